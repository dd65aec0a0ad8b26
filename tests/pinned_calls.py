# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the public API on small data sets, for ``pinned``.

Nothing private is imported, since all below the public names may move. Each call
returns its outputs by name; how long things took, paths and versions are left out.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn import svm
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
)
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import leaveout as lo
from leaveout import data

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import datasets

CALLS = {}


def call(function):
    """Register a call by its name."""
    CALLS[function.__name__] = function
    return function


# Data


@cache
def iris():
    """Return 50 iris flowers of three species, unscaled."""
    X, y = load_iris(return_X_y=True)
    return X[::3], y[::3]


@cache
def wine():
    """Return 60 wines of three growers, scaled, with string labels."""
    X, y = load_wine(return_X_y=True)
    return scale(X[::3]), np.array(["barolo", "grignolino", "barbera"])[y[::3]]


@cache
def cancer():
    """Return 70 tumours of two types, scaled."""
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:70]), y[:70]


@cache
def banana():
    """Return 60 points of two overlapping classes."""
    return data.make_banana(60, noise=2.0, random_state=0)


@cache
def twins():
    """Return 40 grid points with duplicates, some with both labels."""
    random = np.random.default_rng(7)
    X = random.integers(-2, 3, size=(40, 2)).astype(float)
    return X, (X.sum(axis=1) + random.normal(size=40) > 0).astype(int)


def weights(n):
    """Return weights, some of them zero."""
    return np.array([1.0, 2.0, 0.5, 0.0, 1.0, 3.0])[np.arange(n) % 6]


# Outputs of results

SHORT = ("decision_values", "lower", "upper", "certified", "settled_by", "error")


def without_time(text):
    """Return a text without the lines with times."""
    lines = str(text).splitlines()
    return "\n".join(line for line in lines if "seconds" not in line)


def steps(counts):
    """Return the counts of steps, without times."""
    return {key: n for key, n in counts.items() if "seconds" not in key}


def parts(result):
    """Return all attributes of a LooResult."""
    names = (
        "decision_values predictions lower upper ambiguous certified settled_by method "
        "weights binary_values groups anti_learning anti_learning_note error "
        "standard_error n_ambiguous screened"
    )
    outputs = {name: getattr(result, name) for name in names.split()}
    if outputs["decision_values"].ndim == 1:
        del outputs["binary_values"]  # equal to decision_values
    else:
        outputs["margins"] = result.margins
    text = without_time(result)
    return {**outputs, "text": text, "steps": steps(result.counts)}


def loo(estimator, sample, **options):
    return parts(lo.leave_one_out(estimator, *sample, **options))


def short_loo(estimator, sample, **options):
    """Return only the values and how they were computed."""
    found = loo(estimator, sample, **options)
    return {key: found[key] for key in SHORT}


def signs(outputs):
    """Keep the signs of the values, all that labels-only methods determine."""
    values = ("decision_values", "lower", "upper")
    return {**outputs, **{key: np.sign(outputs[key]) for key in values}}


def fitted(estimator, names, X):
    """Return fitted attributes, with values and labels of some samples."""
    outputs = {name: getattr(estimator, name) for name in names.split()}
    outputs["decision_function"] = estimator.decision_function(X)
    return {**outputs, "predict": estimator.predict(X)}


def bounds_parts(bounds):
    rows = {
        row.name: {
            key: value
            for key, value in vars(row).items()
            if key not in ("name", "seconds")
        }
        for row in bounds.rows
    }
    return {"rows": rows, "n_samples": bounds.n_samples, "text": str(bounds)}


def cells(table):
    """Return cv_results_ without times."""
    return {key: v for key, v in table.items() if "time" not in key and key != "params"}


# leave_one_out of an SVC


@cache
def part_of_wine():
    """Return 36 wines, unscaled."""
    X, y = load_wine(return_X_y=True)
    return X[::5], y[::5]


def pipeline(svc):
    return make_pipeline(StandardScaler(), PCA(5), svc)


CALLS |= {
    "svc_walk": lambda: loo(lo.SVC(C=10, gamma=0.02), cancer(), method="walk"),
    **{
        f"svc_{name}": lambda name=name: loo(
            lo.SVC(C=10, gamma=0.2), banana(), method=name
        )
        for name in ("refit", "consolidated")
    },
    "svc_stopping": lambda: signs(
        loo(lo.SVC(C=10, gamma=0.2), banana(), method="stopping")
    ),
    "svc_magic": lambda: loo(lo.SVC(C=1, gamma=0.02), cancer(), method="magic"),
    "svc_labels_only": lambda: loo(lo.SVC(C=10, gamma=0.2), banana(), labels_only=True),
    "svc_of_sklearn": lambda: loo(svm.SVC(C=5), wine(), preprocessing="frozen"),
    "svc_twins": lambda: loo(lo.SVC(C=10, gamma=0.5), twins()),
    "svc_anti_learning": lambda: loo(lo.SVC(C=1e-6, gamma=0.5), banana()),
    "svc_sample_weight": lambda: loo(
        lo.SVC(C=3, gamma=0.2),
        banana(),
        sample_weight=weights(60),
        score_sample_weight=weights(60)[::-1],
    ),
    "svc_groups": lambda: loo(
        lo.SVC(C=3, gamma=0.2), banana(), groups=np.arange(60) // 4
    ),
    "svc_one_vs_rest": lambda: loo(OneVsRestClassifier(lo.SVC(C=1, gamma=0.1)), wine()),
    "pipeline_frozen": lambda: loo(
        pipeline(lo.SVC(C=5)), part_of_wine(), preprocessing="frozen"
    ),
    "pipeline_fold": lambda: loo(pipeline(svm.SVC(C=5)), part_of_wine()),
}


@call
def svc_balanced_fold():
    svc = lo.SVC(C=1, gamma=0.02, class_weight="balanced")
    frozen = loo(svc, cancer(), preprocessing="frozen")
    return {"fold": loo(svc, cancer()), "frozen": frozen["error"]}


@call
def svc_sparse():
    X, y = cancer()
    X = csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0))
    return loo(lo.SVC(C=1, kernel="linear"), (X, y))


@call
def svc_precomputed():
    X, y = banana()
    return loo(lo.SVC(C=2, kernel="precomputed"), (rbf_kernel(X, gamma=0.1), y))


@call
def svc_ill_scaled():
    """Return certificates of problems where rounding matters."""
    X, y = cancer()
    far = X[:, :4] * 1e3 + 1e5
    return {
        "large_C": short_loo(lo.SVC(C=1e9, gamma=0.02), (X, y)),
        "far": short_loo(lo.SVC(C=1e-6, kernel="linear"), (far, y)),
        "poly": short_loo(lo.SVC(C=1e4, kernel="poly", gamma=1.0), (X[:, :3], y)),
        "wide": short_loo(lo.SVC(C=1, gamma=1e-9), (X, y)),
        "narrow": short_loo(lo.SVC(C=1, gamma=1e6), (X, y)),
    }


@call
def svc_kernels():
    svcs = {
        "poly": lo.SVC(C=1, kernel="poly", degree=2, gamma=0.1, coef0=1.0),
        "sigmoid": lo.SVC(C=1, kernel="sigmoid", gamma=0.01, coef0=0.1),
        "linear": lo.SVC(C=0.1, kernel="linear"),
        "laplacian": lo.SVC(C=1, kernel="laplacian", gamma=0.1),
        "cosine": lo.SVC(C=1, kernel="cosine"),
        "own": lo.SVC(C=1, kernel=lambda X, Z: (1.0 + X @ Z.T) ** 2),
    }
    return {name: short_loo(svc, banana()) for name, svc in svcs.items()}


# The other families


@call
def svc_fit():
    X, y = wine()
    svc = lo.SVC(C=5, gamma=0.05).fit(X, y, sample_weight=weights(60))
    names = "classes_ class_weight_ support_ dual_coef_ n_support_ intercept_ gamma_"
    linear = lo.SVC(C=0.5, kernel="linear").fit(X, y)
    outputs = fitted(svc, f"{names} duality_gap_ fit_status_", X[:9])
    outputs["coef"] = linear.coef_
    return {**outputs, "steps": {"n_iter": svc.n_iter_}}


LPM = "expansion_coef_ intercept_ objective_ duality_gap_ support_"


@call
def lpm_walk():
    X, y = iris()
    lpm = lo.LPMClassifier(C=10, gamma=0.1)
    whole = fitted(lpm.fit(X, y), f"{LPM} row_dual_", X[:9])
    return {"fit": whole, "loo": loo(lpm, (X, y), method="walk")}


@call
def loom_refit():
    X, y = iris()
    loom = lo.LOOMClassifier(gamma=0.5)
    whole = fitted(loom.fit(X, y), f"{LPM} slack_ loo_bound_", X[:9])
    return {"fit": whole, "loo": loo(loom, (X, y), method="refit")}


@call
def loom_bound():
    loom = lo.LOOMClassifier(gamma=0.2, fit_intercept=True)
    return loo(loom, banana(), method="bound")


LLW = "expansion_coef_ intercept_ intercept_interval_ dual_ objective_ duality_gap_"


@call
def llw_walk():
    X, y = iris()
    llw = lo.LLWClassifier(C=1, gamma=0.5)
    whole = fitted(llw.fit(X, y), f"{LLW} support_", X[:9])
    return {"fit": whole, "loo": loo(llw, (X, y), method="walk")}


@call
def llw_refit():
    llw = lo.LLWClassifier(C=2, loss="quadratic", gamma=0.1)
    return loo(llw, load_scaled_wine(), method="refit")


@cache
def load_scaled_wine():
    X, y = part_of_wine()
    return scale(X), y


@call
def families_of_twins():
    """Return results of linear programs and LLW models with degenerate optima."""
    estimators = {
        "lpm": lo.LPMClassifier(C=10, gamma=0.5),
        "lpm_no_intercept": lo.LPMClassifier(C=1, gamma=3.0, fit_intercept=False),
        "loom": lo.LOOMClassifier(gamma=0.5),
        "loom_nu": lo.LOOMClassifier(gamma=3.0, nu=0.5, fit_intercept=True),
        "llw": lo.LLWClassifier(C=1000, gamma=0.5),
        "llw_linear": lo.LLWClassifier(C=0.1, kernel="linear"),
    }
    return {name: short_loo(one, twins()) for name, one in estimators.items()}


@call
def feature_svc():
    X, y = banana()
    own = lo.FeatureSVC(n_components=20, C=[0.1, 1, 10], gamma=0.1, random_state=0)
    half = np.arange(60) % 2 == 0
    blocks = [(X[half], y[half]), (X[~half], y[~half])]
    small = lo.FeatureSVC(
        "nystroem", n_components=10, rows_at_once=16, rows_in_memory=20, random_state=1
    )
    linear = lo.FeatureSVC("linear", C=0.5, random_state=0)
    return {
        "fourier": feature_parts(own.fit(X, y), X[:9]),
        "blocks": feature_parts(small.fit(blocks), X[:9]),
        "linear": feature_parts(linear.fit(*wine()), None),
    }


def feature_parts(clf, X):
    names = "classes_ C_ coef_ intercept_ loo_error_ loo_labels_ loo_proved_ path_ "
    names += "objective_ duality_gap_"
    outputs = fitted(clf, names, wine()[0][:9] if X is None else X)
    outputs["path"] = cells(outputs.pop("path_"))
    return {**outputs, "proved": clf.loo_error_.proved}


# Other functions of one classifier


@call
def path():
    found = lo.loo_path(lo.SVC(gamma=0.1), *iris(), Cs=[10, 0.01, 1])
    screened = lo.loo_path(
        lo.SVC(gamma=0.2), *banana(), Cs=[0.1, 1], method="consolidated"
    )
    names = "Cs errors n_ambiguous decision_values anti_learning best_index best_C"
    outputs = {name: getattr(found, name) for name in names.split()}
    outputs["screened"] = screened.screened
    return {**outputs, "text": str(found)}


@call
def curve():
    found = lo.loo_curve(lo.SVC(gamma=0.2), *banana(), C_min=0.05, C_max=50.0)
    names = "breakpoints errors n_ambiguous n_samples n_uncertified best_error "
    names += "best_interval C_min C_max"
    outputs = {name: getattr(found, name) for name in names.split()}
    outputs["error_at"] = found.error_at([0.1, 1.0, 10.0])
    return {**outputs, "text": without_time(found), "steps": steps(found.counts)}


@call
def bounds():
    svc = lo.SVC(C=3, gamma=0.2)
    bare = lo.SVC(C=3, gamma=0.2, fit_intercept=False)
    return {
        "svc": bounds_parts(lo.loo_bounds(svc, *banana())),
        "no_intercept": bounds_parts(lo.loo_bounds(bare, *banana())),
        "lpm": bounds_parts(lo.loo_bounds(lo.LPMClassifier(C=1), *twins())),
    }


@call
def bounds_of_llw():
    clf = lo.LLWClassifier(C=100, loss="quadratic", gamma=0.5)
    hinge = lo.LLWClassifier(C=1, gamma=0.5)
    return {
        "quadratic": bounds_parts(lo.llw_bounds(clf, *iris())),
        "hinge": bounds_parts(lo.llw_bounds(hinge, *iris(), exact=False)),
    }


@call
def pair_auc():
    found = lo.leave_pair_out_auc(lo.SVC(C=3, gamma=0.2), *banana())
    names = "auc wins n_pairs n_ties certified"
    outputs = {name: getattr(found, name) for name in names.split()}
    return {**outputs, "text": without_time(found), "steps": steps(found.counts)}


@call
def permutations():
    svc = lo.SVC(C=1, gamma=0.2)
    X, y = twins()
    how = {"n_permutations": 15, "random_state": 0}
    tests = {
        "samples": lo.loo_permutation_test(svc, X, y, **how),
        "groups": lo.loo_permutation_test(svc, X, y, groups=np.arange(40) // 5, **how),
    }
    names = "error permutation_errors exchanged n_as_good p_value".split()
    return {
        name: {key: getattr(test, key) for key in names} for name, test in tests.items()
    }


@call
def suspicious():
    X, y = iris()
    y = y.copy()
    y[20] = 0
    found = lo.suspects(lo.SVC(C=1, gamma=0.1), X, y, top=12)
    two = lo.suspects(lo.SVC(C=3, gamma=0.2), *banana(), groups=np.arange(60) // 2)
    frame = found.to_frame()
    return {
        "three": frame.reset_index().to_dict("list"),
        "two": {"rows": two.rows, "margins": two.margins, "influence": two.influence},
        "n_flagged": found.n_flagged,
        "error": found.error,
        "text": str(found),
    }


@call
def predictor():
    svc, sample = lo.SVC(C=1.0, gamma=0.2), banana()
    tasks = [
        (lo.SVC(C=C, gamma=0.01), *data.make_mixture(40, random_state=seed))
        for seed in range(2)
        for C in (0.3, 3.0)
    ]
    own = lo.LooPredictor(random_state=0, max_samples=100).fit(tasks)
    default = lo.LooPredictor.load_default()
    lpm = lo.LooPredictor.load_default("lpm")
    again = lo.LooPredictor.from_json(own.to_json())
    return {
        "default": default.decision_values(svc, *sample),
        "lpm": lpm.decision_values(lo.LPMClassifier(C=1.0, gamma=0.2), *sample),
        "errors": default.predict_errors(svc, *sample),
        "rate": default.predict_error_rate(svc, *sample),
        # The linear program of a small training set has many optima.
        "same": np.array_equal(
            *(p.decision_values(svc, *sample) for p in (own, again))
        ),
        "features": own.feature_names_,
        "n_samples": [member.n_samples for member in own.estimators_],
    }


# Tuning


@call
def search():
    grid = {"C": [0.1, 1, 10], "gamma": [0.01, 0.1, 1]}
    found = lo.LooSearchCV(lo.SVC(), grid).fit(*iris())
    return {
        "cells": cells(found.cv_results_),
        "best": {"params": found.best_params_, "score": found.best_score_},
        "index": found.best_index_,
        "values": found.best_loo_result_.decision_values,
        "predict": found.predict(iris()[0][::5]),
    }


@call
def svccv():
    return {"three": svccv_parts(lo.SVCCV(), iris())}


def svccv_parts(clf, sample):
    clf.fit(*sample)
    names = "C_ gamma_ loo_error_ loo_error_std_ loo_decision_values_ best_index_ "
    names += "best_score_ platt_slope_ platt_offset_"
    X = sample[0][::5]
    outputs = fitted(clf, names, X)
    outputs["cells"] = cells(clf.cv_results_)
    return {**outputs, "predict_proba": clf.predict_proba(X)}


@call
def honest():
    X, y = data.make_banana(20, noise=2.0, random_state=3)
    grid = {"C": [1, 100], "gamma": [0.1, 1]}
    found = lo.honest_loo(lo.LooSearchCV(lo.SVC(), grid), X, y, verbose=0)
    names = "predictions folds naive_error error standard_error optimism"
    outputs = {name: getattr(found, name) for name in names.split()}
    return {**outputs, "params": found.params, "text": without_time(found)}


# Errors


@call
def refusals():
    X, y = banana()
    svc = lo.SVC(gamma=0.2)
    wrong = {
        "method": lambda: lo.leave_one_out(svc, X, y, method="fast"),
        "params": lambda: lo.leave_one_out(svc, X, y, method_params={"eps": -1}),
        "C": lambda: lo.SVC(C=-1).fit(X, y),
        "kernel": lambda: lo.SVC(kernel="gauss").fit(X, y),
        "one_class": lambda: lo.leave_one_out(svc, X, np.zeros(60)),
        "nan": lambda: lo.SVC().fit(np.full((60, 2), np.nan), y),
        "lengths": lambda: lo.leave_one_out(svc, X, y[:9]),
        "estimator": lambda: lo.leave_one_out(StandardScaler(), X, y),
        "groups": lambda: lo.leave_one_out(svc, X, y, groups=np.zeros(60)),
        "lpm": lambda: lo.leave_one_out(lo.LPMClassifier(), X, y, groups=y),
        "classes": lambda: lo.loo_curve(svc, *iris()),
        "hard": lambda: lo.LLWClassifier(C=np.inf, gamma=0.5).fit(*twins()),
        "grid": lambda: lo.LooSearchCV(svc, {"D": [1]}).fit(X, y),
        "search": lambda: lo.honest_loo(svc, X, y),
        "model": lambda: lo.save_model(svc, "nowhere.skops"),
        "file": lambda: lo.load_model("nowhere.skops"),
        "predict": lambda: lo.SVC().predict(X),
    }
    return {name: refusal(function) for name, function in wrong.items()}


def refusal(function):
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "none"


# The command line


def run_cli(*arguments):
    """Run ``leaveout`` in this process; return exit code, stdout and stderr."""
    (script,) = entry_points(group="console_scripts", name="leaveout")
    out, err = io.StringIO(), io.StringIO()
    argv = ["leaveout", *map(str, arguments)]
    with patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(err):
        try:
            script.load()()
        except SystemExit as end:
            return end.code or 0, out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def write_table(folder):
    """Write 24 samples: two features, text, id, pairs, and two classes."""
    X, y = datasets.make_class_blobs(24, n_classes=2, separation=1.5, random_state=0)
    columns = {
        "name": [f"s{i}" for i in range(24)],
        "a": X[:, 0].round(6),
        "b": (1000 * X[:, 1]).round(3),
        "site": np.where(np.arange(24) % 3, "x", "y"),
        "pair": np.arange(24) // 2,
        "colour": np.where(y, "red", "blue"),
    }
    path = Path(folder, "tiny.csv")
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def cli_parts(command, *options):
    """Run a command as text and as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        whole = [command, write_table(folder), "--target", "colour", *options]
        code, text, err = run_cli(*whole)
        _, out, _ = run_cli(*whole, "--json")
    found = json.loads(out)
    for name in ("seconds", "command", "versions"):
        found.pop(name, None)
    err = re.sub(r"about [\d.]+ s", "about … s", err)
    return {"code": code, "text": without_time(text), "stderr": err, "json": found}


ROLES = ("--id", "name", "--drop", "pair")


@call
def cli_select():
    grid = ("--grid", "C=1,10", "--grid", "gamma=0.1:1:3")
    return cli_parts("select", *ROLES, *grid, "--honest", "--curve")
