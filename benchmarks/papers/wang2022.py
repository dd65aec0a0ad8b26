# SPDX-License-Identifier: BSD-3-Clause
"""Remake Tables 1 and 2 of Wang & Yang (2022), and check labels and screening.

    python benchmarks/papers/wang2022.py --data DIR [--quick] [--resume]
        [--parts labels table1 table2 ratios generator] [--torchkm PYTHON]

DIR holds the data sets of the paper as ``ccv_*.npz`` with arrays X and y.

Table 1: their simulation, p = 20 and 200, n = 200 ... 1600, RBF kernel of kernlab's
default width, 50 lambda from e^6 to e^-6; CPU seconds of all left-out problems for all
lambda by "walk", "consolidated" (three rules), "magic", LIBSVM (scikit-learn) and, if
available, kernlab in R and TorchKM, beside the paper's. The simulation as printed does
not give the paper's test errors: both are shown, with the Bayes error.

Table 2: eight of their nine data sets.

Labels: "consolidated" and "magic" against "walk" at all 50 lambda, with and without
bias; objectives and screened coefficients against an interior-point method.

Ratios: magic / consolidated on small sets, p >> n and large C; the profile of section
4.1. Generator: another interpretation of the simulation.

Every lambda is timed by itself. A run that was interrupted goes on with ``--resume``,
set by set; seconds of other programs that are stored are kept then.

What is sampled is printed with the results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import wang2022_generator
import wang2022_labels
import wang2022_ratios
import wang2022_table1
import wang2022_table2
from common import print_notes, write_config

from leaveout.run._parallel import limit_blas

PARTS = {
    "labels": (wang2022_labels, ["wang2022_labels"]),
    "table1": (wang2022_table1, ["wang2022_table1", "wang2022_accuracy"]),
    "table2": (wang2022_table2, ["wang2022_table2"]),
    "ratios": (wang2022_ratios, ["wang2022_ratios", "wang2022_profile"]),
    "generator": (wang2022_generator, ["wang2022_generator"]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of .npz sets")
    parser.add_argument("--quick", action="store_true", help="two small sets a part")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--resume", action="store_true", help="keep what is there")
    parser.add_argument(
        "--torchkm", metavar="PYTHON", help="interpreter of an environment with TorchKM"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with limit_blas(1):
        for part in args.parts:
            module, names = PARTS[part]
            notes = module.run(args)
            print_notes(notes)
            if not args.quick:
                for name in names:
                    write_config(name, __file__, args, notes)


if __name__ == "__main__":
    main()
