# SPDX-License-Identifier: BSD-3-Clause
"""From features to a Gram matrix.

Imports: run.
"""
