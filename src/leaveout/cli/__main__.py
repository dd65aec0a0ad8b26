# SPDX-License-Identifier: BSD-3-Clause
"""``python -m leaveout.cli``."""

from leaveout.cli import main

if __name__ == "__main__":
    main()
