# SPDX-License-Identifier: BSD-3-Clause
"""Kernel: from features to a Gram matrix and a Problem. Imports data only."""

from leaveout.kernel._functions import gram_matrix
from leaveout.kernel._problem import Problem

__all__ = ["Problem", "gram_matrix"]
