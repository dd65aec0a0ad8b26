# SPDX-License-Identifier: BSD-3-Clause
"""Processes, threads, checkpoints and files.

Imports: nothing from leaveout.
"""
