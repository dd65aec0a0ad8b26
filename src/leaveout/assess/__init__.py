# SPDX-License-Identifier: BSD-3-Clause
"""One question per file: public function, result class, loop.

Imports: everything above.
"""
