# SPDX-License-Identifier: BSD-3-Clause
import functools
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from leaveout.run._checkpoint import fingerprint

X = np.arange(12.0).reshape(4, 3)
FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
EQUAL = [
    (1, np.float64(1.0)),
    (True, np.bool_(True)),
    ([1, 2], np.array([1.0, 2.0])),
    ((1, "a"), [1, "a"]),
    (X.tolist(), np.asfortranarray(X)),
    (X[::2], X[::2].copy()),
    ({"C": 1, "gamma": 2}, {"gamma": 2, "C": 1}),
    ({1, 2, 3}, {3, 2, 1}),
    (sparse.csr_array(X), sparse.csc_array(X)),
    (["a", "b"], np.array(["a", "b"], dtype=object)),
    (FRAME, FRAME.copy()),
    (SVC(C=1), SVC(C=1.0)),
    (make_pipeline(StandardScaler(), SVC()), make_pipeline(StandardScaler(), SVC())),
]
DIFFERENT = [
    (1, "1"),
    (None, "None"),
    ([1, 2], [2, 1]),
    ([[1, 2]], [[1], [2]]),
    ([["a"], ["b"]], [["a", "b"]]),
    (X, X + 1e-15 * (X == 11)),
    (X, X.T.reshape(4, 3)),
    (X, sparse.csr_array(X)),
    (["ab", "c"], ["a", "bc"]),
    (FRAME, FRAME.rename(columns={"a": "c"})),
    (FRAME, FRAME.assign(b=["x", "y"])),
    (pl.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 3]})),
    (SVC(C=1), SVC(C=2)),
    (make_pipeline(StandardScaler(), SVC()), make_pipeline(SVC())),
    (SVC(kernel=lambda A, B: A @ B.T), SVC(kernel=lambda A, B: 2 * A @ B.T)),
    (functools.partial(max, 1), functools.partial(max, 2)),
    (FunctionTransformer(np.log1p), FunctionTransformer(np.expm1)),
]


@pytest.mark.parametrize(("one", "other"), EQUAL, ids=range(len(EQUAL)))
def test_equal(one, other):
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=range(len(DIFFERENT)))
def test_different(one, other):
    assert fingerprint(one) != fingerprint(other)


def make_kernel(width):
    return lambda A, B: np.exp(-width * np.abs(A - B.T))


def test_a_closure_counts_by_what_it_holds():
    assert fingerprint(make_kernel(1.0)) == fingerprint(make_kernel(1.0))
    assert fingerprint(make_kernel(1.0)) != fingerprint(make_kernel(2.0))


def test_the_same_in_another_process():
    code = (
        "from leaveout.run._checkpoint import fingerprint\n"
        "from sklearn.svm import SVC\n"
        "print(fingerprint([SVC(kernel=lambda A, B: A @ B.T), {'a', 'b', 'c'}, len]))"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert len(prints) == 1


def test_what_cannot_be_seen_is_refused():
    with pytest.raises(TypeError, match="its content is not visible"):
        fingerprint(np.random.RandomState(0))


def kernel_of_module(text, **names):
    """The function ``k`` of a module with this text."""
    module = {"__name__": "mine", **names}
    exec(text, module)
    return module["k"]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("def k(A, B, *, c=1.0): return A @ B.T + c", "c=2.0"),
        ("c = 1.0\ndef k(A, B): return A @ B.T + c", "c = 2.0"),
        ("def g(): return 1.0\ndef k(A, B): return A @ B.T + g()", "return 2.0"),
        ("c = 1.0\ndef k(A, B): return [c for _ in A]", "c = 2.0"),
        ("t = {'f': lambda: 1.0}\ndef k(A, B): return t['f']()", "lambda: 2.0"),
    ],
)
def test_what_a_function_reads_counts(text, other):
    changed = text.replace(other.replace("2.0", "1.0"), other)
    assert changed != text
    assert fingerprint(kernel_of_module(text)) == fingerprint(kernel_of_module(text))
    assert fingerprint(kernel_of_module(text)) != fingerprint(kernel_of_module(changed))


def test_functions_that_call_each_other_end():
    text = "def g(n): return k(n - 1)\ndef k(n): return n and g(n) + k(n - 1)"
    assert fingerprint(kernel_of_module(text)) == fingerprint(kernel_of_module(text))


def test_installed_functions_are_taken_as_they_are():
    text = "def k(A, B): return rbf_kernel(A, B) + np.mean(A)"
    names = {"rbf_kernel": rbf_kernel, "np": np}
    one = fingerprint(kernel_of_module(text, **names))
    assert one == fingerprint(kernel_of_module(text, **names))
    assert one != fingerprint(kernel_of_module(text, **names | {"rbf_kernel": len}))
    assert fingerprint(rbf_kernel) == fingerprint(rbf_kernel)
