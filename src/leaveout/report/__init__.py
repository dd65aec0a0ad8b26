# SPDX-License-Identifier: BSD-3-Clause
"""Results as text, JSON, plots and pages.

Imports: methods, loo, assess, tune, tables, run.
"""
