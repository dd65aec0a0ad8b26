# SPDX-License-Identifier: BSD-3-Clause
"""Models come back as they were; whatever else a file holds, nothing of it runs."""

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
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import leaveout as lo

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(site=np.where(Y % 2, "u", "v"))
THIN = sparse.csr_matrix(X)


def my_kernel(A, B):
    return A @ B.T


def prepared(classifier):
    """Text one-hot encoded, numbers standardised, then the classifier."""
    text = ("text", OneHotEncoder(sparse_output=False), ["site"])
    numbers = ("numbers", StandardScaler(), list("abcd"))
    return make_pipeline(ColumnTransformer([text, numbers]), classifier)


def many_steps():
    log = FunctionTransformer(np.log1p)
    return make_pipeline(SimpleImputer(), log, PCA(3), SelectKBest(k=2), lo.SVC())


MODELS = {
    "SVC": lambda: (lo.SVC(class_weight={0: 2.0}).fit(X, Y), X),
    "sparse": lambda: (lo.SVC().fit(THIN, Y), THIN),
    "LPM": lambda: (lo.LPMClassifier(C=10, gamma=0.1).fit(X, Y), X),
    "LOOM": lambda: (lo.LOOMClassifier(gamma=0.1).fit(X[50:], Y[50:]), X),
    "LLW": lambda: (lo.LLWClassifier(gamma=0.1).fit(X[::3], Y[::3]), X),
    "SVCCV": lambda: (prepared(lo.SVCCV(Cs=[1, 10])).fit(FRAME, NAMES), FRAME),
    "many steps": lambda: (many_steps().fit(X, Y), X),
}


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_model_comes_back_as_it_was(tmp_path, kind):
    model, features = MODELS[kind]()
    path = tmp_path / "model.skops"
    lo.save_model(model, path)
    again = lo.load_model(path)
    assert type(again) is type(model)
    assert again.classes_.tolist() == model.classes_.tolist()
    for name in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, name):
            found, wanted = getattr(again, name), getattr(model, name)
            np.testing.assert_array_equal(found(features), wanted(features))


def test_card_says_where_the_model_is_from(tmp_path):
    path = tmp_path / "model.skops"
    model = prepared(lo.SVC()).fit(FRAME, NAMES)
    lo.save_model(model, path, loo_error=0.04, details={"target": "species"})
    card = lo.read_model_card(path)
    assert card.model == "ColumnTransformer + SVC"
    assert card.feature_names == list(FRAME)
    assert card.n_features == 5
    assert card.classes == ["setosa", "versicolor", "virginica"]
    assert card.loo_error == 0.04
    assert card.details == {"target": "species"}
    assert card.versions["leaveout"] == lo.__version__
    assert card.created.startswith("20")


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lo.SVC(), Exception, "not fitted"),
        (LinearRegression().fit(X, Y), TypeError, "Regression cannot be saved: a"),
        (SVC().fit(X, Y), TypeError, "A SVC cannot be saved: .* Fit leaveout.SVC"),
        (prepared(SVC()).fit(FRAME, Y), TypeError, "Fit leaveout.SVC in its place"),
        (
            GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, Y),
            TypeError,
            "A GridSearchCV .* holds more than a model. Save its best_estimator_",
        ),
        (
            lo.SVC(kernel=my_kernel).fit(X, Y),
            lo.ModelFileError,
            r"cannot be saved in a model file: it has .*my_kernel inside",
        ),
    ],
)
def test_what_cannot_be_saved(tmp_path, model, error, message):
    path = tmp_path / "model.skops"
    with pytest.raises(error, match=message):
        lo.save_model(model, path)
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match=r"No file '.*model.skops'"):
        lo.load_model(path)


class Trap:
    """An object that leaves a trace when it is made again."""

    sprung = 0

    def __setstate__(self, state):
        Trap.sprung += 1

    def __reduce__(self):
        return (Trap.spring, ())

    @staticmethod
    def spring():
        Trap.sprung += 1


def save(model):
    """Return the model file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        lo.save_model(model, Path(folder, "x"))
        return Path(folder, "x").read_bytes()


def rewrite(raw, changed):
    """Return a zip archive with other members, or more."""
    with ZipFile(BytesIO(raw)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    buffer = BytesIO()
    with ZipFile(buffer, "w") as new:
        for name, content in {**members, **changed}.items():
            new.writestr(name, content)
    return buffer.getvalue()


GOOD = save(lo.SVC().fit(X, Y))
CARD = ZipFile(BytesIO(GOOD)).read("leaveout.json")
ARRAY = next(n for n in ZipFile(BytesIO(GOOD)).namelist() if n.endswith(".npy"))


def node(loader, module, name, **content):
    return {"__loader__": loader, "__module__": module, "__class__": name, **content}


def archive(schema):
    return rewrite(GOOD, {"schema.json": json.dumps(schema)})


def trapped(loader, module, name):
    schema = node("DictNode", "builtins", "dict", key_types=[], content={})
    return archive(schema | {"x": node(loader, module, name, content={})})


def unpacks_to_much():
    raw = BytesIO(archive({"x": 1}))
    with ZipFile(raw, "a") as file:
        file.writestr("x", "y")
        file.getinfo("x").file_size = 300 * 2**20
    return raw.getvalue()


def altered(classifier, name, alter):
    """A model one of whose arrays does not fit the others."""
    model = classifier.fit(X[::3], Y[::3])
    setattr(model, name, alter(getattr(model, name)))
    return save(model)


def altered_sparse(name, values):
    """A sparse matrix with indices that point elsewhere."""
    thin = sparse.csr_matrix([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    raw = save(lo.SVC(kernel="linear").fit(thin, [0, 1]))
    (matrix,) = [n for n in ZipFile(BytesIO(raw)).namelist() if n.endswith(".npz")]
    with np.load(BytesIO(ZipFile(BytesIO(raw)).read(matrix))) as file:
        arrays = dict(file)
    arrays[name] = np.asarray(values, arrays[name].dtype)
    buffer = BytesIO()
    np.savez(buffer, **arrays)
    return rewrite(raw, {matrix: buffer.getvalue()})


def too_long_array():
    header = BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, facts)
    return rewrite(GOOD, {ARRAY: header.getvalue()})


def cached(number):
    return node("CachedNode", "x", "y", __id__=number)


def chain(depth, copies):
    """Lists in lists; with copies, each has the one before it twice: 2**depth."""
    tree = node("ListNode", "builtins", "list", content=[], __id__=0)
    for k in range(1, depth):
        content = [tree, cached(k - 1)][: 1 + copies]
        tree = node("ListNode", "builtins", "list", content=content, __id__=k)
    return archive(tree | {"protocol": 2})


def inside_itself():
    tree = node("ListNode", "builtins", "list", content=[cached(7)], __id__=7)
    return archive(tree | {"protocol": 2})


def with_card(**changed):
    return rewrite(GOOD, {"leaveout.json": json.dumps(json.loads(CARD) | changed)})


CORRUPT = "is not a model file of leaveout, or is corrupt"
MISFIT = "does not fit the rest"
LPM, LLW = lo.LPMClassifier(gamma=0.1), lo.LLWClassifier(gamma=0.1)
HOSTILE = [
    (bytes, CORRUPT),
    (lambda: b"a,b\n1,2\n", CORRUPT),
    (lambda: pickle.dumps(Trap()), CORRUPT),
    (lambda: skops.io.dumps(Trap()), "it has no leaveout.json inside"),
    (partial(trapped, "FunctionNode", "os", "system"), "it has os.system inside"),
    (partial(trapped, "ObjectNode", __name__, "Trap"), "Trap inside"),
    (partial(trapped, "ObjectNode", "this", "Zen"), "this.Zen inside"),  # would print
    (partial(trapped, "ObjectNode", "sklearn.svm._classes", "SVC"), "_classes.SVC ins"),
    (partial(trapped, "FunctionNode", "builtins", "dict"), "builtins.dict inside"),
    (partial(trapped, "MethodNode", "sklearn.svm", "SVC"), "sklearn.svm.SVC inside"),
    (partial(trapped, "PartialNode", "functools", "partial"), "functools.partial insi"),
    (partial(trapped, "TypeNode", "subprocess", "Popen"), "subprocess.Popen inside"),
    (partial(trapped, "NdArrayNode", "os", "system"), "os.system inside"),
    (partial(trapped, "OperatorFuncNode", "operator", "methodcaller"), "methodcaller"),
    (partial(trapped, "ReduceNode", "sklearn.svm", "SVC"), "sklearn.svm.SVC inside"),
    (partial(archive, {"x": 1}), CORRUPT),
    (partial(archive, "[" * 50), CORRUPT),
    (unpacks_to_much, r"it unpacks to 314,\d+,\d+ bytes"),
    (
        lambda: rewrite(skops.io.dumps(StandardScaler()), {"leaveout.json": CARD}),
        "holds no classifier of leaveout",
    ),
    (partial(altered, lo.SVC(), "n_support_", lambda a: a * 1000_000), MISFIT),
    (partial(altered, lo.SVC(), "classes_", lambda a: a[:2]), MISFIT),
    (partial(altered, lo.SVC(), "dual_coef_", lambda a: a[:, :2].copy()), MISFIT),
    (partial(altered, lo.SVC(), "support_vectors_", lambda a: a[:3]), MISFIT),
    (partial(altered, lo.SVC(), "support_", lambda a: a + 10**6), MISFIT),
    (partial(altered, lo.SVC(), "shape_fit_", lambda _: (150, 3)), MISFIT),
    (partial(altered, LPM, "support_", lambda a: a - 151), MISFIT),
    (partial(altered, LPM, "expansion_coef_", lambda a: a[:, :9].copy()), MISFIT),
    (partial(altered, LLW, "support_vectors_", lambda a: a[:3]), MISFIT),
    (partial(altered_sparse, "indices", [0, 10**6, 1, 2]), "must be < 3. Save the mo"),
    (partial(altered_sparse, "indptr", [0, 10**6, 4]), CORRUPT),
    (partial(altered_sparse, "format", np.array(b"bsr")), CORRUPT),
    (too_long_array, "corrupt: Unable to allocate"),
    (partial(chain, 60, copies=True), "its .* nodes unfold to far more"),
    (partial(chain, 150, copies=False), CORRUPT),
    (inside_itself, CORRUPT),
    (partial(with_card, feature_names=[1]), "json has an invalid feature_names"),
    (partial(with_card, details=[]), "json has an invalid details"),
    (partial(with_card, loo_error="x"), "json has an invalid loo_error"),
    (partial(with_card, format=9), "in a later format. Upgrade leaveout"),
]


@pytest.mark.parametrize(("make", "message"), HOSTILE)
def test_hostile_files_are_refused_and_nothing_runs(tmp_path, make, message):
    path = tmp_path / "model.skops"
    path.write_bytes(make())
    readers = [lo.load_model]
    if getattr(make, "func", None) is with_card:
        readers.append(lo.read_model_card)
    for read in readers:
        with pytest.raises(lo.ModelFileError, match=rf"model.skops.*{message}"):
            read(path)
    assert Trap.sprung == 0
    assert "this" not in sys.modules


def test_nothing_is_unpacked_whatever_its_name(tmp_path):
    path = tmp_path / "deep" / "er" / "model.skops"
    path.parent.mkdir(parents=True)
    evil = {"../../evil.txt": b"x", str(tmp_path / "evil.txt"): b"x"}
    path.write_bytes(rewrite(GOOD, evil))
    lo.load_model(path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model file as bytes, a path for it, and the values of the model."""
    path = tmp_path_factory.mktemp("fuzz") / "model.skops"
    model = prepared(lo.SVC()).fit(FRAME[::5], NAMES[::5])
    return save(model), path, model.decision_function(FRAME)


SHARE = st.floats(0, 1, exclude_max=True)


@given(
    flips=st.lists(st.tuples(SHARE, st.integers(0, 7)), max_size=4),
    end=st.one_of(st.just(1.0), SHARE),
)
def test_corrupt_files_are_refused_or_change_nothing(saved, flips, end):
    whole, path, values = saved
    raw = bytearray(whole)
    for share, bit in flips:
        raw[int(share * len(raw))] ^= 1 << bit
    path.write_bytes(raw[: int(end * len(raw))])
    refusal = None
    try:
        again = lo.load_model(path)
    except lo.ModelFileError as error:
        refusal = str(error)
    if refusal is None:
        assert end == 1.0
        assert np.array_equal(again.decision_function(FRAME), values)
    else:
        assert "model.skops" in refusal
        assert len(refusal.splitlines()) == 1
