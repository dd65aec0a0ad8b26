# SPDX-License-Identifier: BSD-3-Clause
"""Unwrapping a user's estimator: the SVC inside, or an error with advice."""

import pytest
import sklearn.svm
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from leaveout import SVC, SVCCV, LLWClassifier
from leaveout.adapt._prepare import prepare
from leaveout.adapt._unwrap import unwrap

X, y = load_iris(return_X_y=True)


def nested(svc):
    inner = Pipeline([("pca", PCA()), ("nothing", None), ("svm", svc)])
    return Pipeline([("scale", StandardScaler()), ("inner", inner)])


@pytest.mark.parametrize("family", [sklearn.svm.SVC, SVC])
@pytest.mark.parametrize(
    ("wrap", "prefix", "steps"),
    [
        (lambda svc: svc, "", []),
        (OneVsRestClassifier, "estimator__", []),
        (nested, "inner__svm__", ["scale", "inner__pca"]),
        (
            lambda svc: make_pipeline("passthrough", PCA(), OneVsRestClassifier(svc)),
            "onevsrestclassifier__estimator__",
            ["pca"],
        ),
    ],
)
def test_prefix_and_steps(family, wrap, prefix, steps):
    svc = family(C=2.0)
    estimator = wrap(svc)
    model = unwrap(estimator)
    assert model.estimator is svc
    assert model.prefix == prefix
    estimator.set_params(**{f"{prefix}C": 7.0})
    assert svc.C == 7.0
    assert [name for name, _ in model.steps] == steps
    assert model.in_pipeline == isinstance(estimator, Pipeline)
    assert model.params.one_vs_rest == ("estimator__" in prefix)


@pytest.mark.parametrize(
    ("estimator", "advice"),
    [
        (sklearn.svm.LinearSVC(), r"LinearSVC .* Use SVC\(kernel='linear', C=...\)"),
        (sklearn.svm.NuSVC(), r"NuSVC .* nu implies a different C .* Use SVC\(C=...\)"),
        (sklearn.svm.SVR(), "SVR is not supported: it is a regressor, and only class"),
        (sklearn.svm.OneClassSVM(), "OneClassSVM .* only one class. .* use an SVC"),
        (make_pipeline(SGDClassifier()), "ending in SGDClassifier .* stops short"),
        (GridSearchCV(SVC(), {}), "GridSearchCV .* Pass an SVC with fixed parameters"),
        (SVCCV(), "SVCCV .* is a search. .* loo_error_ .* honest_loo"),
        (LLWClassifier(), "LLWClassifier .* works with .* LooSearchCV and llw_bounds"),
        (OneVsOneClassifier(SVC()), "OneVsOneClassifier .* Pass the SVC"),
        (KMeans(), r"KMeans .* not a support vector .*cross_val_predict.*LeaveOneOut"),
        (sklearn.svm.SVC, r"not the class SVC. Pass SVC\(\)"),
        (None, "NoneType is not supported"),
        (
            make_pipeline(PCA(), make_pipeline(PCA(), sklearn.svm.SVR())),
            "Pipeline ending in Pipeline ending in SVR is not supported",
        ),
        (
            OneVsRestClassifier(make_pipeline(PCA(), SVC())),
            r"OneVsRestClassifier of Pipeline .* make_pipeline\(..., OneVsRest",
        ),
        (
            OneVsRestClassifier(OneVsRestClassifier(SVC())),
            "OneVsRestClassifier of OneVsRestClassifier .* has no effect",
        ),
        (make_pipeline(PCA(), "passthrough"), r"without a classifier.*End it with SVC"),
        (Pipeline([]), "Pipeline without a classifier"),
        (make_pipeline(PCA(), SVC(), SVC()), "Step 'svc-1' .* not a transformer: SVC"),
        (make_pipeline(PCA, SVC()), r"Step .* not the class PCA. Pass PCA\(\)"),
    ],
)
def test_unsupported_estimators_get_advice(estimator, advice):
    with pytest.raises(TypeError, match=advice):
        prepare(estimator, X, y)


def test_arguments_in_the_wrong_order():
    with pytest.raises(TypeError, match=r"the first argument, .*got ndarray"):
        unwrap(X)
