# SPDX-License-Identifier: BSD-3-Clause
"""From users' files to a Dataset.

Imports: run.
"""
