# SPDX-License-Identifier: BSD-3-Clause
import json
import pickle
import sys
from functools import partial
from io import BytesIO
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
from leaveout._model_file import make_card

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(site=np.where(Y % 2, "u", "v"))


def my_kernel(A, B):
    return A @ B.T


def prepared(classifier):
    """Text one-hot encoded, numbers standardised, then the classifier."""
    columns = ColumnTransformer(
        [
            ("text", OneHotEncoder(sparse_output=False), ["site"]),
            ("numbers", StandardScaler(), list("abcd")),
        ]
    )
    return make_pipeline(columns, classifier)


MODELS = {
    "SVC": lambda: (lo.SVC(class_weight={0: 2.0}).fit(X, Y), X),
    "sparse": lambda: (lo.SVC().fit(sparse.csr_matrix(X), Y), sparse.csr_matrix(X)),
    "LPM": lambda: (lo.LPMClassifier(C=10, gamma=0.1).fit(X, Y), X),
    "LOOM": lambda: (lo.LOOMClassifier(gamma=0.1).fit(X[50:], Y[50:]), X),
    "LLW": lambda: (lo.LLWClassifier(gamma=0.1).fit(X[::3], Y[::3]), X),
    "SVCCV": lambda: (prepared(lo.SVCCV(Cs=[1, 10])).fit(FRAME, NAMES), FRAME),
    "search": lambda: (
        lo.LooSearchCV(prepared(lo.SVC()), {"svc__C": [1.0, 10.0]})
        .fit(FRAME, Y)
        .best_estimator_,
        FRAME,
    ),
    "many steps": lambda: (
        make_pipeline(
            SimpleImputer(),
            FunctionTransformer(np.log1p),
            PCA(3),
            SelectKBest(k=2),
            lo.SVC(),
        ).fit(X, Y),
        X,
    ),
}


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_model_comes_back_as_it_was(tmp_path, kind):
    model, features = MODELS[kind]()
    path = tmp_path / "model.skops"
    lo.save_model(model, path)
    again = lo.load_model(path)
    assert type(again) is type(model)
    assert np.array_equal(again.predict(features), model.predict(features))
    assert np.array_equal(
        again.decision_function(features), model.decision_function(features)
    )
    assert again.classes_.tolist() == model.classes_.tolist()
    if hasattr(model, "predict_proba"):
        assert np.array_equal(
            again.predict_proba(features), model.predict_proba(features)
        )


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
        (
            LinearRegression().fit(X, Y),
            TypeError,
            "Regression cannot be saved: a",
        ),
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


CORRUPT = "is not a model file of leaveout, or is corrupt"


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


def node(loader, module, name, **content):
    return {"__loader__": loader, "__module__": module, "__class__": name, **content}


def archive(schema):
    buffer = BytesIO()
    with ZipFile(buffer, "w") as file:
        file.writestr("schema.json", json.dumps(schema))
        card = make_card(lo.SVC().fit(X[:100], Y[:100]))
        file.writestr("leaveout.json", card.to_json())
    return buffer.getvalue()


def trapped(loader, module, name):
    return archive(
        node("DictNode", "builtins", "dict", key_types=[], content={})
        | {"x": node(loader, module, name, content={})}
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", CORRUPT),
        (b"a,b\n1,2\n", CORRUPT),
        (pickle.dumps(Trap()), CORRUPT),
        (skops.io.dumps(Trap()), "it has no leaveout.json inside"),
        (trapped("FunctionNode", "os", "system"), "it has os.system inside"),
        (trapped("ObjectNode", __name__, "Trap"), "Trap inside"),
        (trapped("ObjectNode", "this", "Zen"), "this.Zen inside"),  # prints on import
        (trapped("ObjectNode", "sklearn.svm._classes", "SVC"), "_classes.SVC inside"),
        (trapped("FunctionNode", "builtins", "dict"), "builtins.dict inside"),
        (trapped("MethodNode", "sklearn.svm", "SVC"), "sklearn.svm.SVC inside"),
        (trapped("PartialNode", "functools", "partial"), "functools.partial inside"),
        (trapped("TypeNode", "subprocess", "Popen"), "subprocess.Popen inside"),
        (trapped("NdArrayNode", "os", "system"), "os.system inside"),
        (trapped("OperatorFuncNode", "operator", "methodcaller"), "methodcaller"),
        (trapped("ReduceNode", "sklearn.svm", "SVC"), "sklearn.svm.SVC inside"),
        (archive({"x": 1}), CORRUPT),
        (archive("[" * 50), CORRUPT),
    ],
)
def test_foreign_files_are_refused_and_nothing_runs(tmp_path, raw, message):
    path = tmp_path / "model.skops"
    path.write_bytes(raw)
    with pytest.raises(lo.ModelFileError, match=message) as caught:
        lo.load_model(path)
    assert "model.skops" in str(caught.value)
    assert Trap.sprung == 0
    assert "this" not in sys.modules


def rewrite(path, **changed):
    """Change or add members of a model file."""
    with ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with ZipFile(path, "w") as new:
        for name, content in {**members, **changed}.items():
            new.writestr(name, content)


@pytest.fixture
def path(tmp_path):
    """The file of a small model."""
    path = tmp_path / "model.skops"
    lo.save_model(lo.SVC().fit(X, Y), path)
    return path


def test_small_file_that_unpacks_to_a_huge_one(tmp_path):
    path = tmp_path / "model.skops"
    raw = BytesIO(archive({"x": 1}))
    with ZipFile(raw, "a") as file:
        file.writestr("x", "y")
        file.getinfo("x").file_size = 300 * 2**20
    path.write_bytes(raw.getvalue())
    with pytest.raises(lo.ModelFileError, match=r"it unpacks to 314,\d+,\d+ bytes"):
        lo.load_model(path)


def test_file_must_hold_a_classifier_of_ours(path):
    raw = BytesIO(skops.io.dumps(StandardScaler().fit(X)))
    with ZipFile(raw, "a") as file:
        file.writestr("leaveout.json", make_card(lo.SVC().fit(X, Y)).to_json())
    path.write_bytes(raw.getvalue())
    with pytest.raises(lo.ModelFileError, match="holds no classifier of leaveout"):
        lo.load_model(path)


LPM = partial(lo.LPMClassifier, gamma=0.1)
LLW = partial(lo.LLWClassifier, gamma=0.1)
ALTERED = [
    (lo.SVC, "n_support_", lambda a: a * 1000_000),
    (lo.SVC, "classes_", lambda a: a[:2]),
    (lo.SVC, "dual_coef_", lambda a: a[:, :2].copy()),
    (lo.SVC, "support_vectors_", lambda a: a[:3]),
    (lo.SVC, "support_", lambda a: a + 10**6),
    (lo.SVC, "shape_fit_", lambda _: (150, 3)),
    (LPM, "support_", lambda a: a - 151),
    (LPM, "expansion_coef_", lambda a: a[:, :9].copy()),
    (LLW, "support_vectors_", lambda a: a[:3]),
]


@pytest.mark.parametrize(("make", "name", "alter"), ALTERED)
def test_arrays_that_do_not_fit_together_are_refused(path, make, name, alter):
    model = make().fit(X[::3], Y[::3])
    setattr(model, name, alter(getattr(model, name, None)))
    lo.save_model(model, path)
    with pytest.raises(lo.ModelFileError, match=r"model.skops.* does not fit the rest"):
        lo.load_model(path)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("indices", [0, 10**6, 1, 2], "must be < 3. Save the model again"),
        ("indptr", [0, 10**6, 4], CORRUPT),
        ("format", np.array(b"bsr"), CORRUPT),
    ],
)
def test_sparse_matrix_that_points_elsewhere_is_refused(path, name, values, message):
    thin = sparse.csr_matrix([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    lo.save_model(lo.SVC(kernel="linear").fit(thin, [0, 1]), path)
    with ZipFile(path) as old:
        (matrix,) = [member for member in old.namelist() if member.endswith(".npz")]
        with np.load(BytesIO(old.read(matrix))) as file:
            arrays = dict(file)
    arrays[name] = np.asarray(values, arrays[name].dtype)
    buffer = BytesIO()
    np.savez(buffer, **arrays)
    rewrite(path, **{matrix: buffer.getvalue()})
    with pytest.raises(lo.ModelFileError, match=message):
        lo.load_model(path)


def cached(number):
    return node("CachedNode", "x", "y", __id__=number)


def chain(depth, copies):
    """Lists in lists; with copies, each has the one before it twice: 2**depth."""
    tree = node("ListNode", "builtins", "list", content=[], __id__=0)
    for k in range(1, depth):
        content = [tree, cached(k - 1)][: 1 + copies]
        tree = node("ListNode", "builtins", "list", content=content, __id__=k)
    return tree


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (chain(60, copies=True), "its .* nodes unfold to far more"),
        (node("ListNode", "builtins", "list", content=[cached(7)], __id__=7), CORRUPT),
        (chain(150, copies=False), CORRUPT),
    ],
    ids=["doubled", "inside itself", "deep"],
)
def test_trees_without_end_are_refused(tmp_path, schema, message):
    path = tmp_path / "model.skops"
    path.write_bytes(archive(schema | {"protocol": 2}))
    with pytest.raises(lo.ModelFileError, match=message):
        lo.load_model(path)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("feature_names", [1], "json has an invalid feature_names"),
        ("details", [], "json has an invalid details"),
        ("loo_error", "x", "json has an invalid loo_error"),
        ("format", 9, "in a later format. Upgrade leaveout"),
    ],
)
def test_card_with_other_content_is_refused(path, field, value, message):
    card = json.loads(ZipFile(path).read("leaveout.json"))
    rewrite(path, **{"leaveout.json": json.dumps(card | {field: value})})
    for read in (lo.load_model, lo.read_model_card):
        with pytest.raises(lo.ModelFileError, match=message):
            read(path)


def test_nothing_is_unpacked_whatever_its_name(tmp_path):
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    path = folder / "model.skops"
    lo.save_model(lo.SVC().fit(X, Y), path)
    rewrite(path, **{"../../evil.txt": b"x", str(tmp_path / "evil.txt"): b"x"})
    lo.load_model(path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


def test_array_that_declares_more_than_there_is(path):
    with ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".npy"))
    header = BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, facts)
    rewrite(path, **{name: header.getvalue()})
    with pytest.raises(lo.ModelFileError, match="corrupt: Unable to allocate"):
        lo.load_model(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model file as bytes, the path it had, and the values of the model."""
    path = tmp_path_factory.mktemp("fuzz") / "model.skops"
    model = prepared(lo.SVC()).fit(FRAME[::5], NAMES[::5])
    lo.save_model(model, path)
    return path.read_bytes(), path, model.decision_function(FRAME)


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
