# SPDX-License-Identifier: BSD-3-Clause
"""FeatureSVC: linear SVMs on kernel features of millions of rows.

Imports: engine, loo, adapt, run.
"""
