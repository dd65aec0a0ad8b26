# SPDX-License-Identifier: BSD-3-Clause
"""Remake Table 1 and Figures 1 to 3 of Weston (1999), the leave-one-out machine.

    python benchmarks/papers/weston1999.py --data DIR [--quick] [--resume]
                              [--parts table1 splits folds figure1 figure2 figure3]

DIR holds the IDA sets as ``ida_*.npz`` with arrays X, y and, where the published splits
are known, train_idx and test_idx. Nothing is standardised.

Table 1: test errors with the kernel width of the smallest cross-validation error on
the first training sets, the median over them, as in the paper. Beside it the widths
that the exact leave-one-out error, the machine's own bound and the sum of its slacks
choose; an SVM with C and width by exact leave-one-out, chosen in the same way; and
SVCCV, which tunes itself on each training set.

Splits and folds: what of the differences from the paper is chance.

Figures 1 and 2: the toy problems. The paper does not give their points; ours are made
after its text. Figure 3: thyroid, over the width.

What is smaller than in the paper is printed with the results.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import weston1999_figures
import weston1999_splits
import weston1999_table1
from common import print_notes, write_config

from leaveout.exceptions import CertificateWarning
from leaveout.run._parallel import limit_blas

PARTS = {
    "table1": weston1999_table1.run,
    "splits": weston1999_splits.run_splits,
    "folds": weston1999_splits.run_folds,
    "figure1": weston1999_figures.run_figure1,
    "figure2": weston1999_figures.run_figure2,
    "figure3": weston1999_figures.run_figure3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz sets")
    parser.add_argument("--quick", action="store_true", help="a part, not stored")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="keep sets already there")
    args = parser.parse_args()
    notes = []
    # Widths that no sample can be reached with are part of the grid.
    warnings.simplefilter("ignore", CertificateWarning)
    with limit_blas(1):
        for part in args.parts:
            notes += PARTS[part](args)
    print_notes(notes)
    if not args.quick and set(args.parts) == set(PARTS):
        write_config("weston1999", __file__, args, notes)


if __name__ == "__main__":
    main()
