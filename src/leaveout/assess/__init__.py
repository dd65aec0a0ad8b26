# SPDX-License-Identifier: BSD-3-Clause
"""One public function per file, with its result class.

Imports: kernel, engine, methods, lp, llw, loo, adapt, run.
"""
