# SPDX-License-Identifier: BSD-3-Clause
"""The SVC inside Pipelines and OneVsRestClassifier, and the names of its parameters."""

import pytest
import sklearn.svm
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from leaveout import SVC, leave_one_out
from leaveout.adapt._unwrap import unwrap

FAMILIES = [sklearn.svm.SVC, SVC]


def nested(svc):
    inner = Pipeline([("pca", PCA()), ("nothing", None), ("machine", svc)])
    return Pipeline([("scale", StandardScaler()), ("inner", inner)])


ESTIMATORS = {
    "bare": (lambda svc: svc, ""),
    "pipeline": (lambda svc: make_pipeline(StandardScaler(), svc), "svc__"),
    "alone": (make_pipeline, "svc__"),
    "rest": (OneVsRestClassifier, "estimator__"),
    "nested": (nested, "inner__machine__"),
    "pipeline of rest": (
        lambda svc: make_pipeline(PCA(), OneVsRestClassifier(svc)),
        "onevsrestclassifier__estimator__",
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_prefix_sets_the_parameters_of_the_svc(family, name):
    wrap, wanted = ESTIMATORS[name]
    svc = family(C=2.0)
    estimator = wrap(svc)
    model = unwrap(estimator)
    assert model.estimator is svc
    prefix = model.prefix
    assert prefix == wanted
    estimator.set_params(**{f"{prefix}C": 7.0})
    assert svc.C == 7.0


def test_steps_without_those_that_do_nothing():
    model = unwrap(nested(SVC()))
    assert [name for name, _ in model.steps] == ["scale", "inner__pca"]
    assert model.in_pipeline
    assert not model.params.one_vs_rest
    model = unwrap(make_pipeline("passthrough", OneVsRestClassifier(SVC())))
    assert model.steps == ()
    assert model.in_pipeline
    assert model.params.one_vs_rest
    assert not unwrap(SVC()).in_pipeline


@pytest.mark.parametrize(
    ("estimator", "advice"),
    [
        (
            make_pipeline(PCA(), sklearn.svm.LinearSVC()),
            r"Pipeline ending in LinearSVC will not do: .*Use SVC\(kernel='linear'",
        ),
        (
            make_pipeline(PCA(), sklearn.svm.NuSVC()),
            "Pipeline ending in NuSVC will not do: its nu means another C",
        ),
        (make_pipeline(sklearn.svm.SVR()), "Pipeline ending in SVR .* regressor"),
        (make_pipeline(sklearn.svm.OneClassSVM()), "ending in OneClassSVM .* one cla"),
        (make_pipeline(SGDClassifier()), "ending in SGDClassifier .* stops short"),
        (make_pipeline(PCA(), KMeans()), "ending in KMeans will .*cross_val_predict"),
        (
            make_pipeline(PCA(), make_pipeline(PCA(), sklearn.svm.SVR())),
            "Pipeline ending in Pipeline ending in SVR will not do",
        ),
        (
            GridSearchCV(make_pipeline(PCA(), SVC()), {}),
            "GridSearchCV will not do: it is a search. Pass its best_estimator_",
        ),
        (make_pipeline(GridSearchCV(SVC(), {})), "ending in GridSearchCV .* a search"),
        (
            OneVsRestClassifier(sklearn.svm.LinearSVC()),
            "OneVsRestClassifier of LinearSVC will not do: it squares",
        ),
        (
            OneVsRestClassifier(make_pipeline(PCA(), SVC())),
            r"OneVsRestClassifier of Pipeline .* make_pipeline\(..., OneVsRest",
        ),
        (
            OneVsRestClassifier(OneVsRestClassifier(SVC())),
            "OneVsRestClassifier of OneVsRestClassifier .* adds nothing",
        ),
        (make_pipeline(PCA(), "passthrough"), r"without a classifier.*End it with SVC"),
        (make_pipeline(PCA(), None), "Pipeline without a classifier"),
        (Pipeline([]), "Pipeline without a classifier"),
        (make_pipeline(PCA(), SVC), r"not the class SVC. Pass SVC\(\)"),
        (make_pipeline(PCA(), SVC(), SVC()), "Step 'svc-1' .* no transformer: SVC"),
        (make_pipeline(PCA, SVC()), r"Step .* not the class PCA. Pass PCA\(\)"),
    ],
)
def test_others_get_advice(estimator, advice):
    for function in (unwrap, lambda e: leave_one_out(e, [[0.0], [1.0]], [0, 1])):
        with pytest.raises(TypeError, match=advice):
            function(estimator)
