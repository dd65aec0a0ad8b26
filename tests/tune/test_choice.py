# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.model_selection import ParameterGrid
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from leaveout.tune._choice import (
    best_within_one_se,
    rank_candidates,
    tabulate_params,
    take_best,
)
from leaveout.tune._paths import split_paths


def split(grid, C_name="C", own=1.0):
    candidates = list(ParameterGrid(grid))
    names = [C_name] * len(candidates)
    return candidates, split_paths(
        candidates, names, [c.get(C_name, own) for c in candidates]
    )


def test_every_candidate_is_in_one_cell():
    scalers = [StandardScaler(), MinMaxScaler()]
    weights = [{0: 1, 1: 2}, "balanced", None]  # no hash, a text, nothing
    candidates, cells = split(
        [
            {
                "svc__C": np.logspace(0, 2, 3),
                "scale": scalers,
                "svc__class_weight": weights,
            },
            {"svc__kernel": ["linear"], "svc__C": [1, 10]},
        ],
        "svc__C",
    )
    assert len(cells) == 2 * 3 + 1
    positions = [position for cell in cells for position in cell.positions]
    assert sorted(positions) == list(range(len(candidates)))
    for cell in cells:
        assert "svc__C" not in cell.params
        for position, C in zip(cell.positions, cell.Cs, strict=True):
            assert candidates[position] == {**cell.params, "svc__C": C}


def test_a_grid_without_c_has_one_cell_each():
    _, cells = split({"gamma": [0.1, 0.2]}, own=3.0)
    assert [cell.Cs for cell in cells] == [(3.0,), (3.0,)]
    assert len(split({})[1]) == 1


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_scipy(seed):
    scores = np.random.default_rng(seed).integers(0, 5, 12) / 5
    assert (rank_candidates(scores) == rankdata(-scores, method="min")).all()


def test_nan_ranks_last_and_avoided_before_it():
    scores = np.array([np.nan, 0.5, 1.0, 0.7, np.nan, -np.inf])
    avoid = np.array([True, False, True, False, False, False])
    assert rank_candidates(scores, avoid).tolist() == [5, 2, 4, 1, 5, 3]
    assert rank_candidates(scores, np.ones(6, dtype=bool)).tolist() == [
        5,
        3,
        1,
        2,
        5,
        4,
    ]


def test_ties_go_to_smaller_c_then_smaller_gamma_then_order():
    ranks = np.array([2, 1, 1, 1, 1])
    assert take_best(ranks, [0.1, 10, 1, 1, 1], [1, 1, 2, 0.5, 0.5]) == 3
    assert (
        take_best(ranks, [0.1, 1, 1, 1, 1], ["scale", "auto", "scale", 5, "auto"]) == 3
    )
    assert take_best(ranks, [1, 1, 1, 1, 1]) == 1


def test_parameter_columns_have_the_types_of_their_values():
    table = tabulate_params(
        [
            {"C": 1, "kernel": "rbf", "gamma": 0.1, "class_weight": {0: 1}},
            {"C": 2.5, "kernel": lambda A, B: A, "gamma": "scale"},
        ]
    )
    assert table["param_C"].dtype == np.float64
    assert table["param_gamma"].tolist() == [0.1, "scale"]
    assert table["param_kernel"].dtype == object
    assert table["param_class_weight"][0] == {0: 1}
    assert table["param_class_weight"].mask.tolist() == [False, True]


@pytest.mark.parametrize(
    ("scores", "avoid", "chosen"),
    [
        ([0.5, 0.85, 0.9, 0.8], None, 1),
        ([0.79, 0.5, 0.9, 0.5], None, 2),  # 0.79 is more than one error away
        ([0.8, 0.5, 0.9, 0.5], None, 0),  # 0.8 is not
        ([0.9, 0.9, 0.9, 0.9], [True, False, False, False], 1),
        ([0.95, 0.84, 0.9, 0.9], [True, False, False, False], 1),
        ([0.95, 0.9, 0.9, 0.9], [True] * 4, 0),
        ([np.nan, np.nan, 0.9, np.nan], None, 2),
        ([np.nan] * 4, None, 0),
    ],
)
def test_smoothest_within_one_standard_error(scores, avoid, chosen):
    avoid = None if avoid is None else np.array(avoid)
    Cs = [0.1, 1.0, 10.0, 100.0]
    found = best_within_one_se(
        np.array(scores), np.full(4, 0.1 + 1e-12), Cs, avoid=avoid
    )
    assert found == chosen


def test_smoothest_goes_by_C_then_gamma():  # noqa: N802
    Cs, gammas = [10.0, 1.0, 1.0, 1.0], [0.1, 4.0, 0.5, 2.0]
    scores = np.array([0.9, 0.89, 0.87, 0.88])
    assert best_within_one_se(scores, np.full(4, 0.1), Cs, gammas) == 2
    assert best_within_one_se(scores, np.full(4, np.nan), Cs, gammas) == 0
