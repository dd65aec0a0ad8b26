# SPDX-License-Identifier: BSD-3-Clause
import json
import pickle
import sys
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

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
from sklearn.multiclass import OneVsRestClassifier
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
    "ours": lambda: (lo.SVC().fit(X, Y), X),
    "sparse": lambda: (lo.SVC().fit(sparse.csr_matrix(X), Y), sparse.csr_matrix(X)),
    "LPM": lambda: (lo.LPMClassifier(C=10, gamma=0.1).fit(X, Y), X),
    "scikit-learn's": lambda: (SVC(kernel="poly", gamma=0.1).fit(X, NAMES), X),
    "LOOM": lambda: (lo.LOOMClassifier(gamma=0.1).fit(X, NAMES), X),
    "weights": lambda: (lo.SVC(class_weight={0: 2.0, 1: 1.0, 2: 1.0}).fit(X, Y), X),
    "prepared": lambda: (prepared(lo.SVC(kernel="linear")).fit(FRAME, NAMES), FRAME),
    "SVCCV": lambda: (prepared(lo.SVCCV(Cs=[1, 10])).fit(FRAME, NAMES), FRAME),
    "search": lambda: (
        lo.LooSearchCV(prepared(SVC()), {"svc__C": [1.0, 10.0]})
        .fit(FRAME, Y)
        .best_estimator_,
        FRAME,
    ),
    "one-vs-rest": lambda: (prepared(OneVsRestClassifier(SVC())).fit(FRAME, Y), FRAME),
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


@pytest.mark.filterwarnings("ignore::leaveout.PreprocessingWarning")
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


def test_tuned_classifier_keeps_probabilities_and_error(tmp_path):
    path = tmp_path / "model.skops"
    model = lo.SVCCV(Cs=[1, 10], gammas=[0.1]).fit(X, Y)
    lo.save_model(model, path)
    again = lo.load_model(path)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.loo_error_ == model.loo_error_ == lo.read_model_card(path).loo_error
    assert again.loo_result_.n_ambiguous == model.loo_result_.n_ambiguous


def test_plain_skops_reads_it_too(tmp_path):
    path = tmp_path / "model.skops"
    lo.save_model(SVC().fit(X, Y), path)
    assert isinstance(skops.io.load(path), SVC)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (lo.SVC(), Exception, "not fitted"),
        (LinearRegression().fit(X, Y), TypeError, "must be a classifier; got Linear"),
        (
            GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(X, Y),
            TypeError,
            "Save its best_estimator_",
        ),
        (
            lo.LooSearchCV(SVC(), {"C": [1.0]}).fit(X, Y),
            TypeError,
            "A LooSearchCV holds more than a model. Save its best_estimator_",
        ),
        (
            lo.SVC(kernel=my_kernel).fit(X, Y),
            lo.ModelFileError,
            r"cannot be kept in a model file: it has .*my_kernel inside",
        ),
    ],
)
def test_what_cannot_be_saved(tmp_path, model, error, message):
    path = tmp_path / "model.skops"
    with pytest.raises(error, match=message):
        lo.save_model(model, path)
    assert not path.exists()


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


def archive(schema, card=True, compression=0):
    buffer = BytesIO()
    with ZipFile(buffer, "w", compression=compression) as file:
        file.writestr("schema.json", json.dumps(schema))
        if card:
            model = lo.SVC().fit(X[:100], Y[:100])
            file.writestr("leaveout.json", make_card(model).to_json())
    return buffer.getvalue()


def trapped(loader, module, name):
    return archive(
        node("DictNode", "builtins", "dict", key_types=[], content={})
        | {"x": node(loader, module, name, content={})}
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "is no model file of leaveout, or damaged"),
        (b"a,b\n1,2\n", "is no model file of leaveout, or damaged"),
        (pickle.dumps(Trap()), "is no model file of leaveout, or damaged"),
        (skops.io.dumps(Trap()), "it has no leaveout.json inside"),
        (skops.io.dumps(SVC().fit(X, Y)), "it has no leaveout.json inside"),
        (trapped("FunctionNode", "os", "system"), "it has os.system inside"),
        (trapped("ObjectNode", __name__, "Trap"), "Trap inside"),
        (trapped("ObjectNode", "sklearn.utils._x", "A"), "sklearn.utils._x.A inside"),
        (trapped("MethodNode", "sklearn.svm", "SVC"), "sklearn.svm.SVC inside"),
        (trapped("PartialNode", "functools", "partial"), "functools.partial inside"),
        (trapped("TypeNode", "subprocess", "Popen"), "subprocess.Popen inside"),
        (trapped("NdArrayNode", "os", "system"), "os.system inside"),
        (trapped("OperatorFuncNode", "operator", "methodcaller"), "methodcaller"),
        (trapped("ReduceNode", "sklearn.svm", "SVC"), "sklearn.svm.SVC inside"),
        (archive({"x": 1}), "is no model file of leaveout, or damaged"),
        (archive("[" * 50), "is no model file of leaveout, or damaged"),
    ],
)
def test_foreign_files_are_refused_and_nothing_runs(tmp_path, raw, message):
    path = tmp_path / "model.skops"
    path.write_bytes(raw)
    with pytest.raises(lo.ModelFileError, match=message) as caught:
        lo.load_model(path)
    assert "model.skops" in str(caught.value)
    assert Trap.sprung == 0


def test_module_named_in_a_file_is_not_imported(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(trapped("ObjectNode", "this", "Zen"))  # prints when imported
    with pytest.raises(lo.ModelFileError, match=r"this.Zen inside"):
        lo.load_model(path)
    assert "this" not in sys.modules


def test_small_file_that_unpacks_to_a_huge_one(tmp_path, monkeypatch):
    path = tmp_path / "model.skops"
    path.write_bytes(archive({"x": " " * 1_000_000}, compression=ZIP_DEFLATED))
    monkeypatch.setattr("leaveout._model_file.N_BYTES_FREE", 0)
    with pytest.raises(lo.ModelFileError, match=r"it unpacks to 1,\d+,\d+ bytes"):
        lo.load_model(path)


def test_later_format_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    lo.save_model(lo.SVC().fit(X, Y), path)
    with ZipFile(path) as old, ZipFile(tmp_path / "new.skops", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(lo.ModelFileError, match=r"in a later format. Upgrade leaveout"):
        lo.load_model(tmp_path / "new.skops")


THIN = sparse.csr_matrix(np.where(X > 3.0, X, 0.0))
ALTERED = {
    "too many of a class": (SVC, X, "_n_support", lambda a: a * 1000),
    "fewer than none": (SVC, X, "_n_support", lambda a: a - a.sum()),
    "a class less": (SVC, X, "classes_", lambda a: a[:2]),
    "too few coefficients": (SVC, X, "_dual_coef_", lambda a: a[:, :2].copy()),
    "too few intercepts": (SVC, X, "_intercept_", lambda a: a[:1]),
    "another machine": (SVC, X, "_impl", lambda _: "epsilon_svr"),
    "sparse and not": (SVC, X, "_sparse", lambda _: True),
    "ours, too many": (lo.SVC, X, "n_support_", lambda a: a * 1000_000),
    "ours, too few": (lo.SVC, X, "support_vectors_", lambda a: a[:3]),
    "ours, far away": (lo.SVC, X, "support_", lambda a: a + 10**6),
    "sparse, too many": (SVC, THIN, "_n_support", lambda a: a * 1000),
    "sparse, too few": (SVC, THIN, "_dual_coef_", lambda a: a[:, :1]),
}


@pytest.mark.parametrize("kind", ALTERED)
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, kind):
    # Compiled code of scikit-learn would read beyond them.
    make, features, name, alter = ALTERED[kind]
    path = tmp_path / "model.skops"
    model = make().fit(features, Y)
    setattr(model, name, alter(getattr(model, name, None)))
    lo.save_model(model, path)
    with pytest.raises(lo.ModelFileError, match=r"model.skops.* does not fit the rest"):
        lo.load_model(path)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("indices", [0, 10**6, 1, 2], "a sparse matrix is broken"),
        ("indptr", [0, 10**6, 4], "is no model file of leaveout, or damaged"),
        ("indptr", [4, 2, 0], "is no model file of leaveout, or damaged"),
        ("format", np.array(b"bsr"), "is no model file of leaveout, or damaged"),
    ],
)
def test_sparse_matrix_that_points_elsewhere_is_refused(
    tmp_path, name, values, message
):
    path = tmp_path / "model.skops"
    thin = sparse.csr_matrix([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    lo.save_model(lo.SVC(kernel="linear").fit(thin, [0, 1]), path)
    with ZipFile(path) as old:
        members = {member: old.read(member) for member in old.namelist()}
    (matrix,) = [member for member in members if member.endswith(".npz")]
    with np.load(BytesIO(members[matrix])) as arrays:
        arrays = {**arrays, name: np.asarray(values, np.asarray(arrays[name]).dtype)}
    buffer = BytesIO()
    np.savez(buffer, **arrays)
    with ZipFile(path, "w") as new:
        for member, content in members.items():
            new.writestr(member, buffer.getvalue() if member == matrix else content)
    with pytest.raises(lo.ModelFileError, match=message):
        lo.load_model(path)


def cached(number):
    return node("CachedNode", "x", "y", __id__=number)


def doubled(depth):
    """A chain of lists, each with the one before it twice: 2**depth in the end."""
    tree = node("ListNode", "builtins", "list", content=[], __id__=0)
    for k in range(1, depth):
        tree = node(
            "ListNode", "builtins", "list", content=[tree, cached(k - 1)], __id__=k
        )
    return tree


def within_itself():
    return node("ListNode", "builtins", "list", content=[cached(7)], __id__=7)


def nested(depth):
    tree = node("ListNode", "builtins", "list", content=[])
    for _ in range(depth):
        tree = node("ListNode", "builtins", "list", content=[tree])
    return tree


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (doubled(60), "its .* nodes unfold to far more"),
        (
            node("ListNode", "builtins", "list", content=[cached(7)], __id__=7),
            "damaged",
        ),
        (nested(150), "damaged"),
    ],
    ids=["doubled", "inside itself", "deep"],
)
def test_trees_without_end_are_refused(tmp_path, schema, message):
    path = tmp_path / "model.skops"
    path.write_bytes(archive(schema | {"protocol": 2}))
    with pytest.raises(lo.ModelFileError, match=message):
        lo.load_model(path)


def rewrite(path, **changed):
    """Change or add members of a model file."""
    with ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with ZipFile(path, "w") as new:
        for name, content in {**members, **changed}.items():
            new.writestr(name, content)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("feature_names", "abc"), ("feature_names", [1]), ("details", []),
        ("versions", None), ("loo_error", "x"), ("classes", 3), ("format", "1"),
    ],
)  # fmt: skip
def test_card_with_other_content_is_refused(tmp_path, field, value):
    path = tmp_path / "model.skops"
    lo.save_model(lo.SVC().fit(X, Y), path)
    card = json.loads(ZipFile(path).read("leaveout.json"))
    rewrite(path, **{"leaveout.json": json.dumps(card | {field: value})})
    for read in (lo.load_model, lo.read_model_card):
        with pytest.raises(lo.ModelFileError, match=f"{field} in leaveout.json"):
            read(path)


def test_nothing_is_unpacked_whatever_its_name(tmp_path):
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    path = folder / "model.skops"
    lo.save_model(lo.SVC().fit(X, Y), path)
    rewrite(path, **{"../../evil.txt": b"x", str(tmp_path / "evil.txt"): b"x"})
    lo.load_model(path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [path]


def test_array_that_declares_more_than_there_is(tmp_path):
    path = tmp_path / "model.skops"
    lo.save_model(lo.SVC().fit(X, Y), path)
    with ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".npy"))
    header = BytesIO()
    facts = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, facts)
    rewrite(path, **{name: header.getvalue()})
    with pytest.raises(lo.ModelFileError, match="damaged: Unable to allocate"):
        lo.load_model(path)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No file '.*none.skops'"):
        lo.load_model(tmp_path / "none.skops")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model file as bytes, the path it had, and the model."""
    path = tmp_path_factory.mktemp("fuzz") / "model.skops"
    model = prepared(lo.SVC()).fit(FRAME[::5], NAMES[::5])
    lo.save_model(model, path)
    return path.read_bytes(), path, model


def load_or_refuse(path):
    """Return the model, or None if the file is refused in one sentence."""
    try:
        return lo.load_model(path)
    except lo.ModelFileError as error:
        refusal = str(error)
    assert "model.skops" in refusal
    assert len(refusal.splitlines()) == 1
    return None


def check_harmless(saved, raw):
    """The file is refused in one sentence, or gives the very same model."""
    _, path, model = saved
    path.write_bytes(raw)
    again = load_or_refuse(path)
    if again is not None:
        values = model.decision_function(FRAME)
        assert np.array_equal(again.decision_function(FRAME), values)


@given(share=st.floats(0, 1, exclude_max=True))
def test_truncated_files_are_refused(saved, share):
    raw, path, _ = saved
    path.write_bytes(raw[: int(share * len(raw))])
    with pytest.raises(
        lo.ModelFileError, match="no model file of leaveout, or damaged"
    ):
        lo.load_model(path)


@given(
    flips=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)),
        min_size=1,
        max_size=4,
    )
)
def test_flipped_bits_anywhere(saved, flips):
    raw = bytearray(saved[0])
    for share, bit in flips:
        raw[int(share * len(raw))] ^= 1 << bit
    check_harmless(saved, bytes(raw))


@given(back=st.integers(1, 2500), byte=st.integers(0, 255))
def test_changed_bytes_in_the_directory_of_the_archive(saved, back, byte):
    # The end of a zip file: names, sizes and offsets, which no checksum guards.
    raw = bytearray(saved[0])
    raw[-min(back, len(raw))] = byte
    check_harmless(saved, bytes(raw))


@given(data=st.data())
def test_changed_schema_with_right_checksums(saved, data):
    with ZipFile(BytesIO(saved[0])) as old:
        members = {name: old.read(name) for name in old.namelist()}
    text = bytearray(members["schema.json"])
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(32, 126))
    buffer = BytesIO()
    with ZipFile(buffer, "w") as new:
        for name, content in members.items():
            new.writestr(name, bytes(text) if name == "schema.json" else content)
    _, path, _ = saved
    path.write_bytes(buffer.getvalue())
    load_or_refuse(path)  # may be another model, but never another kind of error
