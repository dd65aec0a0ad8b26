# SPDX-License-Identifier: BSD-3-Clause
"""From scikit-learn estimators and data to a task and a plan.

Imports: kernel, engine, methods, loo, run.
"""
