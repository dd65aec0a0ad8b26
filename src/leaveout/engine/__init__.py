# SPDX-License-Identifier: BSD-3-Clause
"""One binary SVM: from Problem to Solution to leave-one-out values.

Imports: run.
"""
