# SPDX-License-Identifier: BSD-3-Clause
"""Exact leave-one-out for support vector machines."""

from leaveout.estimators import SVC

__all__ = ["SVC"]
