# SPDX-License-Identifier: BSD-3-Clause
"""Independent truth for the tests; nothing here uses the package's own solvers."""
