# SPDX-License-Identifier: BSD-3-Clause
"""The multi-class SVM of Lee, Lin & Wahba (Guermeur & Monfrini 2009).

Imports: engine, methods, run.
"""
