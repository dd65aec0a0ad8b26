# SPDX-License-Identifier: BSD-3-Clause
import numpy as np

from leaveout.data import Dataset
from leaveout.report import format_choice, format_dataset, format_grid
from leaveout.select import GridErrors


def example(n_gammas=2):
    n_wrong = np.array([[2, 1], [1, 0]])[:, :n_gammas]
    gammas = np.array([0.015625, 0.25])[:n_gammas]
    return GridErrors(np.array([0.01, 1000]), gammas, n_wrong, n_wrong + 3, 8)


DATASET = Dataset(
    "toys", np.ones((8, 2)), np.array(list("aaaaabbb")), ["u", "v"], "kind"
)


def test_dataset():
    assert format_dataset(DATASET) == (
        "toys: 8 samples, 2 features\nClasses (kind): a 5, b 3"
    )


def test_grid_aligns_and_marks_the_best():
    assert format_grid(example(), "rbf").splitlines()[1:] == [
        "     C   gamma 0.0156     gamma 0.25",
        "  0.01         25.00          12.50",
        "  1000         12.50           0.00*",
    ]


def test_grid_without_gamma():
    assert format_grid(example(n_gammas=1), "linear").splitlines()[1:] == [
        "     C   error",
        "  0.01   25.00",
        "  1000   12.50*",
    ]


def test_choice():
    text = format_choice(example(n_gammas=1), "rbf", DATASET)
    assert "SVC(kernel='rbf', C=1000, gamma=0.015625)" in text
    assert "12.50 % +- 11.69 % (1 of 8 wrong, 4 ambiguous)" in text
    assert "Always 'a' would be wrong on 37.50 %" in text
    assert "gamma" not in format_choice(example(n_gammas=1), "linear", DATASET)
