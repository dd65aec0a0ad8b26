# SPDX-License-Identifier: BSD-3-Clause
"""The classifiers.

Imports: kernel, engine, lp, llw, loo, adapt, run.
"""
