# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own tests of its SVM module, with our SVC in the place of its.

Nothing is copied: the module is imported from the installed scikit-learn, which ships
its tests, and every test in it that speaks of ``SVC`` is run. ``peer_reasons.py`` lists
those that cannot pass, each with its reason; the list is strict: a test that starts to
pass fails here until it is taken off, and so does an entry that fits no test.

    python benchmarks/peer_tests.py

writes the table.
"""

import importlib.util
import inspect
import re
from types import SimpleNamespace

import pytest
import sklearn
import sklearn.svm
from nightly.peer_reasons import PEER_REASONS

import leaveout as lo

# Some tests stop the solver after a step or two, and do not ask whether it warned.
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.skipif(
        [int(part) for part in sklearn.__version__.split(".")[:2]] < [1, 9],
        reason="PEER_REASONS are those of scikit-learn 1.9",
    ),
]
MODULE = "sklearn.svm.tests.test_svm"
OTHERS = {
    getattr(sklearn.svm, name) for name in sklearn.svm.__all__ if name[0].isupper()
} - {sklearn.svm.SVC}


class SVC(lo.SVC):
    """Ours with ``random_state``, which most of the tests pass; there is no chance."""

    def __init__(
        self,
        C=1.0,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        class_weight=None,
        decision_function_shape="ovr",
        break_ties=False,
        fit_intercept=True,
        tol=1e-9,
        max_iter=-1,
        random_state=None,
    ):
        own = {k: v for k, v in locals().items() if k in lo.SVC().get_params()}
        super().__init__(**own)
        self.random_state = random_state


def _load():
    """Import the module again while scikit-learn's SVC is ours.

    Decorators of the tests keep what they see then; functions look it up later.
    """
    spec = importlib.util.find_spec(MODULE)
    module = importlib.util.module_from_spec(spec)
    original, sklearn.svm.SVC = sklearn.svm.SVC, SVC
    try:
        spec.loader.exec_module(module)
    finally:
        sklearn.svm.SVC = original
    names = {name: getattr(sklearn.svm, name) for name in sklearn.svm.__all__}
    module.svm = SimpleNamespace(**{**names, "SVC": SVC})
    return module


def _without_others(mark):
    """Return a parametrisation without the cases of other classes; None if empty."""
    if mark.name != "parametrize":
        return mark
    names, values = mark.args[:2]
    kept = [k for k, value in enumerate(values) if not _speaks_of_others(value)]
    options = dict(mark.kwargs)
    if isinstance(options.get("ids"), list):
        options["ids"] = [options["ids"][k] for k in kept]
    kept = [values[k] for k in kept]
    return pytest.mark.parametrize(names, kept, **options).mark if kept else None


def _speaks_of_others(value):
    parts = value if isinstance(value, tuple | list) else [value]
    return any(
        inspect.isclass(kind) and kind in OTHERS
        for kind in (part if inspect.isclass(part) else type(part) for part in parts)
    )


def _is_about_svc(function):
    return re.search(r"\bSVC\b|SVCClass|Estimator\b", inspect.getsource(function))


def _take(module):
    """Put the tests about SVC here; return how many there are and how many not."""
    n_others = 0
    for name, function in vars(module).items():
        if not name.startswith("test_"):
            continue
        marks = [_without_others(m) for m in getattr(function, "pytestmark", [])]
        if None in marks or not _is_about_svc(function):
            n_others += 1
            continue
        function.pytestmark = marks
        globals()[name] = function
    return n_others


N_OTHERS = _take(_load())


@pytest.fixture
def global_random_seed():
    """What scikit-learn's own configuration gives its tests."""
    return 42


@pytest.fixture(autouse=True)
def expected_failure(request):
    """Mark the tests of the list as failures that must happen."""
    for entry, reason in PEER_REASONS.items():
        if request.node.name == entry or request.node.name.startswith(f"{entry}["):
            request.node.add_marker(pytest.mark.xfail(reason=reason, strict=True))


def test_every_reason_belongs_to_a_test(request):
    names = {getattr(item, "originalname", item.name) for item in request.session.items}
    names |= set(globals())
    unknown = [name for name in PEER_REASONS if name.split("[")[0] not in names]
    assert not unknown
