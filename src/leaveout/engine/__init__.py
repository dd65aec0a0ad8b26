# SPDX-License-Identifier: BSD-3-Clause
"""One binary SVM: Problem to Solution to leave-one-out values.

Imports: run.
"""
