# SPDX-License-Identifier: BSD-3-Clause
"""From a classifier's subproblems to its leave-one-out result.

Imports: kernel, engine, methods, lp, llw, run.
"""
