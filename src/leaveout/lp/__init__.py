# SPDX-License-Identifier: BSD-3-Clause
"""Classifiers that are linear programs (Tsuda 2001, Weston 1999).

Imports: engine, run.
"""
