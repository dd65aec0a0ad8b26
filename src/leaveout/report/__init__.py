# SPDX-License-Identifier: BSD-3-Clause
"""Results as text, JSON, plots and pages.

Imports: loo, methods, assess, tune, tables, run.
"""
