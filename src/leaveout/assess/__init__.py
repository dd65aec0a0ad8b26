# SPDX-License-Identifier: BSD-3-Clause
"""One question per file: public function, result class, loop.

Imports: kernel, engine, methods, lp, llw, loo, adapt, run.
"""
