# SPDX-License-Identifier: BSD-3-Clause
"""A FeatureSVC that is cut short goes on from its checkpoint."""

import numpy as np
import pytest
from on_workers import TroubledFeatures
from sklearn.kernel_approximation import RBFSampler

from leaveout import CheckpointError, FeatureSVC
from leaveout.data import make_mixture

X, Y = make_mixture(4000, 5, random_state=0)
COMMON = {"n_components": 20, "C": [0.001, 0.01], "random_state": 0}


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "fit.db"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished fit and its file."""
    path = tmp_path_factory.mktemp("whole") / "fit.db"
    return FeatureSVC(**COMMON, checkpoint=path).fit(X, Y), path.read_bytes()


@pytest.fixture
def finished(whole, kept):
    """A copy of that file."""
    kept.write_bytes(whole[1])
    return kept


def assert_same_machine(one, other):
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(other.intercept_, one.intercept_, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(other.loo_labels_, one.loo_labels_)
    assert other.loo_error_ == one.loo_error_


@pytest.mark.parametrize("calls", [4, 30])
def test_interrupted_fit_goes_on(kept, tmp_path, capsys, calls):
    """Each pass calls transform four times."""
    features = TroubledFeatures(str(tmp_path), calls, victim=0)
    options = {"C": COMMON["C"], "random_state": 0, "rows_in_memory": 100}
    options |= {"rows_at_once": 1000}
    svc = FeatureSVC(features, **options, checkpoint=kept)
    with pytest.raises(KeyboardInterrupt):
        svc.fit(X, Y)
    told = capsys.readouterr().err
    began = kept.exists()
    assert began == (f"passes are kept in {kept}; run again" in told)
    svc.fit(X, Y)
    whole = FeatureSVC(features, **options).fit(X, Y)
    assert_same_machine(whole, svc)
    assert (svc.n_passes_ < whole.n_passes_) == began


def test_finished_fit_is_not_repeated(whole, finished):
    """Nor if parameters differ that do not change the classifier."""
    first = whole[0]
    again = FeatureSVC(**COMMON, checkpoint=finished, rows_at_once=999).fit(X, Y)
    assert_same_machine(first, again)
    assert again.n_passes_ == 2 < first.n_passes_  # class statistics, and one last scan


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"C": [0.001, 0.02]}, "parameters"),
        ({"n_components": 21}, "parameters"),
        ({"gamma": 0.3}, "parameters"),
        ({"class_weight": "balanced"}, "parameters"),
        ({"features": "nystroem"}, "parameters"),
        ({"random_state": 1}, r"seed \(\d+ there, \d+ here\)"),
    ],
)
def test_other_fit_is_refused_before_it_begins(finished, change, differs):
    other = FeatureSVC(**{**COMMON, **change}, checkpoint=finished)
    with pytest.raises(CheckpointError, match=f"another run; what differs: {differs}"):
        other.fit(X[:2], Y[:2])  # too few for anything else


def test_other_data_are_refused(finished):
    changed = X.copy()
    changed[77, 1] += 1e-9
    for table, labels in [(changed, Y), (X, 1 - Y), (X[:-1], Y[:-1])]:
        with pytest.raises(CheckpointError, match="what differs: data"):
            FeatureSVC(**COMMON, checkpoint=finished).fit(table, labels)


def test_seed_of_the_file_is_taken_if_none_is_given(kept):
    free = {**COMMON, "random_state": None, "checkpoint": kept}
    first = FeatureSVC(**free).fit(X, Y)
    again = FeatureSVC(**free).fit(X, Y)
    assert_same_machine(first, again)
    np.testing.assert_array_equal(
        first.transformer_.random_weights_, again.transformer_.random_weights_
    )


def test_features_drawn_anew_are_refused(kept):
    features = RBFSampler(n_components=20)
    options = {"C": COMMON["C"], "random_state": 0, "checkpoint": kept}
    FeatureSVC(features, **options).fit(X, Y)
    with pytest.raises(CheckpointError, match="features, which must have a random_st"):
        FeatureSVC(features, **options).fit(X, Y)


def test_small_fits_need_no_file(kept):
    """The exact solver takes all rows at once: there is nothing to go on from."""
    FeatureSVC(**COMMON, checkpoint=kept).fit(X[:500], Y[:500])
    assert not kept.exists()
