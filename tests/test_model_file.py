# SPDX-License-Identifier: BSD-3-Clause
"""Models survive a round trip, and untrusted files run no code."""

import json
import pickle
import sys
import tempfile
from functools import partial
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import leaveout as lo

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(site=np.where(Y % 2, "u", "v"))
THIN, LOG = sparse.csr_matrix(X), FunctionTransformer(np.log1p)


def my_kernel(A, B):
    return A @ B.T


def prepared(classifier):
    """Return a Pipeline: encode text, standardise numbers, classify."""
    text = ("text", OneHotEncoder(sparse_output=False), ["site"])
    numbers = ("numbers", StandardScaler(), list("abcd"))
    return make_pipeline(ColumnTransformer([text, numbers]), classifier)


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize(
    ("model", "features", "labels"),
    [
        (lo.SVC(class_weight={0: 2.0}), THIN, Y),
        (lo.LOOMClassifier(gamma=0.1), X[50:], Y[50:]),
        (lo.LLWClassifier(gamma=0.1), X[::3], Y[::3]),
        (prepared(lo.SVCCV(Cs=[1, 10])), FRAME, NAMES),
        (make_pipeline(SimpleImputer(), LOG, PCA(3), SelectKBest(k=2), lo.SVC()), X, Y),
    ],
)
def test_round_trip_of_model_and_card(tmp_path, model, features, labels):
    path = tmp_path / "model.skops"
    lo.save_model(model.fit(features, labels), path, details={"target": "species"})
    again, card = lo.load_model(path), lo.read_model_card(path)
    assert type(again) is type(model)
    for name in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, name):
            found, wanted = getattr(again, name), getattr(model, name)
            np.testing.assert_array_equal(found(features), wanted(features))
    assert card.model.split(" + ")[-1] in ("SVC", "SVCCV", type(model).__name__)
    assert card.feature_names == list(getattr(features, "columns", []))
    assert card.classes == np.unique(labels).tolist()
    assert card.details == {"target": "species"}
    assert card.versions["leaveout"] == lo.__version__


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lo.SVC(), Exception, "not fitted"),
        (
            StandardScaler().fit(X),
            TypeError,
            "Scaler cannot be saved: use a class",
        ),
        (prepared(SVC()).fit(FRAME, Y), TypeError, "Use leaveout.SVC instead"),
        (
            GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, Y),
            TypeError,
            "GridSearchCV .* it is a search. Save its best_estimator_",
        ),
        (lo.SVC(kernel=my_kernel).fit(X, Y), lo.ModelFileError, "contains .*my_kern"),
    ],
)
def test_unsupported_models_are_refused(tmp_path, model, error, message):
    path = tmp_path / "model.skops"
    with pytest.raises(error, match=message):
        lo.save_model(model, path)
    with pytest.raises(FileNotFoundError, match=r"No file '.*model.skops'"):
        lo.load_model(path)


class Trap:
    """An object that leaves a trace when it is unpickled."""

    def __reduce__(self):
        return (__import__, ("this",))


def save(model):
    """Return the model file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        lo.save_model(model, Path(folder, "x"))
        return Path(folder, "x").read_bytes()


def members(raw):
    with ZipFile(BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(raw, changed):
    """Return a zip archive with members replaced or added."""
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in {**members(raw), **changed}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


GOOD = save(lo.SVC().fit(X, Y))
CARD = members(GOOD)["leaveout.json"]


def with_card(**changed):
    return rewrite(GOOD, {"leaveout.json": json.dumps(json.loads(CARD) | changed)})


def with_schema(schema):
    return rewrite(GOOD, {"schema.json": json.dumps(schema)})


def node(loader, path, **content):
    module, _, name = path.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": name, **content}


def with_node(loader, path):
    schema = node("DictNode", "builtins.dict", key_types=[], content={})
    return with_schema(schema | {"x": node(loader, path, content={})})


def lists(content, depth=1, copies=1):
    """Return nested lists; with 2 copies, each contains the previous one twice."""
    for k in range(depth):
        tree = node("ListNode", "builtins.list", content=content, __id__=k)
        content = [tree, node("CachedNode", "x.y", __id__=k)][:copies]
    return with_schema(tree | {"protocol": 2})


def unpacks_to_much():
    raw = BytesIO(GOOD)
    with ZipFile(raw, "a") as file:
        file.writestr("x", "y")
        file.getinfo("x").file_size = 300 * 2**20
    return raw.getvalue()


def altered(classifier, name, alter):
    """Return a model with one array of a wrong shape."""
    model = classifier.fit(THIN[::3], Y[::3])
    setattr(model, name, alter(getattr(model, name)))
    return save(model)


def point_elsewhere(matrix, name):
    getattr(matrix, name)[1] = 10**6
    return matrix


def too_long_array():
    header = BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, facts)
    array = next(name for name in members(GOOD) if name.endswith(".npy"))
    return rewrite(GOOD, {array: header.getvalue()})


CORRUPT = "is not a leaveout model file, or is corrupt"
MISFIT = "(has an inconsistent shape|indices must be < 4|indptr must be)"
LPM = lo.LPMClassifier(gamma=0.1)
TRAPS = [
    "FunctionNode os.system",
    "FunctionNode builtins.dict",
    "MethodNode sklearn.svm.SVC",
    "ObjectNode this.Zen",  # its import would print
    "ObjectNode sklearn.svm._classes.SVC",
    "OperatorFuncNode operator.methodcaller",
    "PartialNode functools.partial",
    "ReduceNode sklearn.svm.SVC",
    "TypeNode subprocess.Popen",
]
MISFITS = [
    (lo.SVC(), "n_support_", lambda a: a * 1000_000),
    (lo.SVC(), "classes_", lambda a: a[:2]),
    (lo.SVC(), "dual_coef_", lambda a: a[:, :2].copy()),
    (lo.SVC(), "support_vectors_", lambda a: a[:3]),
    (lo.SVC(), "support_vectors_", partial(point_elsewhere, name="indices")),
    (lo.SVC(), "support_vectors_", partial(point_elsewhere, name="indptr")),
    (lo.SVC(), "support_", lambda a: a + 10**6),
    (LPM, "support_", lambda a: a - 151),
    (LPM, "expansion_coef_", lambda a: a[:, :9].copy()),
]
HOSTILE = [
    (lambda: b"a,b\n1,2\n", CORRUPT),
    (lambda: pickle.dumps(Trap()), CORRUPT),
    (lambda: skops.io.dumps(X), "it does not contain leaveout.json"),
    *(
        (partial(with_node, *trap.split()), f"contains .*{trap[-8:].strip()}")
        for trap in TRAPS
    ),
    *((partial(altered, *misfit), MISFIT) for misfit in MISFITS),
    (partial(with_schema, {"x": 1}), CORRUPT),
    (unpacks_to_much, r"it unpacks to 314,\d+,\d+ bytes"),
    (
        lambda: rewrite(skops.io.dumps(StandardScaler()), {"leaveout.json": CARD}),
        "contains no classifier of leaveout",
    ),
    (too_long_array, "corrupt: Unable to allocate"),
    (partial(lists, [], depth=60, copies=2), "its .* nodes expand to too many"),
    (partial(lists, [], depth=150), CORRUPT),
    (partial(lists, [node("CachedNode", "x.y", __id__=0)]), CORRUPT),
    (partial(with_card, feature_names=[1]), "json has an invalid feature_names"),
    (partial(with_card, loo_error="x"), "json has an invalid loo_error"),
    (partial(with_card, format=9), "in a later format. Upgrade leaveout"),
]


@pytest.mark.parametrize(("make", "message"), HOSTILE)
def test_hostile_files_are_refused_without_running_code(tmp_path, make, message):
    path = tmp_path / "model.skops"
    path.write_bytes(make())
    with pytest.raises(lo.ModelFileError, match=rf"model.skops.*{message}"):
        lo.load_model(path)
    assert "this" not in sys.modules


def test_members_are_never_unpacked_to_disk(tmp_path):
    path = tmp_path / "deep" / "model.skops"
    path.parent.mkdir()
    evil = {"../evil.txt": b"x", str(tmp_path / "evil.txt"): b"x"}
    path.write_bytes(rewrite(GOOD, evil))
    lo.load_model(path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


def test_corrupt_files_are_refused_or_change_nothing(tmp_path, rng):
    path = tmp_path / "model.skops"
    model = prepared(lo.SVC()).fit(FRAME[::5], NAMES[::5])
    whole = save(model)
    for k in range(50):
        raw = bytearray(whole[: rng.integers(len(whole)) if k % 3 == 0 else None])
        for place in rng.integers(len(raw), size=k % 5):
            raw[place] ^= 1 << rng.integers(8)
        path.write_bytes(raw)
        try:
            values = lo.load_model(path).decision_function(FRAME)
        except lo.ModelFileError as error:
            (refusal,) = str(error).splitlines()
            assert "model.skops" in refusal
        else:
            assert len(raw) == len(whole)
            assert np.array_equal(values, model.decision_function(FRAME))
