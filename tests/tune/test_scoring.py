# SPDX-License-Identifier: BSD-3-Clause
import numpy as np
import pytest
from scipy.stats import bootstrap
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from leaveout.tune._scoring import alike_blocks, random_blocks, standard_errors


@pytest.fixture
def labels(rng):
    y = rng.integers(0, 2, 400)
    return y, np.where(rng.random(400) < 0.2, 1 - y, y)


def test_accuracy_has_the_binomial_error(labels):
    y, predictions = labels
    p = np.mean(y == predictions)

    def accuracy(rows):
        return {"a": np.mean(y[rows] == predictions[rows])}

    for blocks in (alike_blocks(y, predictions), alike_blocks(np.arange(400))):
        found = standard_errors(accuracy, {"a": p}, blocks, 400)["a"]
        assert found == pytest.approx(np.sqrt(p * (1 - p) / 400), rel=1e-9)
    found = standard_errors(accuracy, {"a": p}, random_blocks(400), 400)["a"]
    assert found == pytest.approx(np.sqrt(p * (1 - p) / 400), rel=0.3)


def test_other_scores_agree_with_the_bootstrap(labels, rng):
    y, predictions = labels
    values = predictions + rng.normal(size=400)

    def scores(rows):
        return {
            "balanced": balanced_accuracy_score(y[rows], predictions[rows]),
            "auc": roc_auc_score(y[rows], values[rows]),
        }

    whole = scores(np.arange(400))
    found = standard_errors(scores, whole, random_blocks(400), 400)
    for name in whole:
        wanted = bootstrap(
            (np.arange(400),), lambda rows, name=name: scores(rows)[name],
            n_resamples=300, method="basic", vectorized=False, random_state=0,
        ).standard_error  # fmt: skip
        assert found[name] == pytest.approx(wanted, rel=0.3)


def test_blocks_hold_every_row_once():
    for n in (3, 50, 173):
        blocks = random_blocks(n)
        rows = np.concatenate([block.rows for block in blocks])
        assert sorted(rows) == list(range(n))
    for n_groups in (4, 80):
        groups = np.arange(173) % n_groups
        parts = [set(groups[block.rows]) for block in random_blocks(173, groups)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == n_groups
    y = np.array(["a", "b", "a", "a"])
    assert sum(block.n_alike for block in alike_blocks(y, y == "a")) == 4
