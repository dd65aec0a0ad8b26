# SPDX-License-Identifier: BSD-3-Clause
"""Independent reference solutions; none of them uses the package's solvers."""
