# SPDX-License-Identifier: BSD-3-Clause
"""Searches, scores, calibration and nested leave-one-out.

Imports: kernel, engine, methods, lp, llw, loo, adapt, estimators, assess, run.
"""
