# SPDX-License-Identifier: BSD-3-Clause
"""The stress set: problems made to break floating point, counted by outcome.

    python benchmarks/stress.py [--cases 12]

For each kind of problem in tests/nightly/stress.py and stress_families.py a fixed list
of seeds is drawn: 2 to 8 samples that coincide nearly or exactly, kernels of rank one,
random labels, C from 1e-12 to 1e12, weights over 12 decades, Gram values from 1e-298 to
1e297. They are put to every method of leave_one_out, to every other call that leaves
samples out of an SVC (stress_api.py) and, with fewer samples, to the other classifiers
(stress_linear.py). Every answer is judged against arithmetic without rounding
(tests/oracles/rational.py), which takes most of the time. Then come mirror images of up
to 40 samples whose left-out value is 0 (stress_mirror.py), and input at the edge of
doubles for every classifier and function of the public API, each data set in a process
of its own with a time limit: ``answered`` without NaN, or ``refused`` by a message of
ours; anything else is a ``defect``. The counts are written to
results/stress/results.json; they are the same at every run.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))
from nightly.stress import (  # noqa: E402
    ALLOWED,
    KINDS,
    METHODS,
    draw,
    judge,
    truth_of,
)
from nightly.stress_api import CALLS, judge_call  # noqa: E402
from nightly.stress_families import FAMILIES, draw_family  # noqa: E402
from nightly.stress_linear import CLASSIFIERS, judge_classifier  # noqa: E402
from nightly.stress_mirror import MIRRORED, draw_mirror, judge_mirror  # noqa: E402
from oracles.problems import Case  # noqa: E402

import leaveout as lo  # noqa: E402

PENALTIES = (1e-12, 1.0, 1e12)
SCALES = {"1e-150": 1e-150, "1e-50": 1e-50, "1e50": 1e50, "1e150": 1e150}
TIME_LIMIT = 120.0


def exact_cases(kind: str, n_cases: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Judge a kind of problem: outcomes by who answers, and what is not allowed."""
    outcomes: dict[str, Counter[str]] = {}
    bad = []
    cases = ((seed, draw_case(kind, seed)) for seed in range(10_000))
    drawn = ((seed, case) for seed, case in cases if case is not None)
    for seed, case in islice(drawn, n_cases):
        for name, words in answers(case, seed):
            outcomes.setdefault(name, Counter()).update(words)
            if not set(words) <= {*ALLOWED, "refused"}:
                bad.append(f"{kind} seed={seed} {name}: {words}")
    return outcomes, bad


def draw_case(kind: str, seed: int) -> Case | None:
    """Draw a problem of a kind or family; None if rounding made K indefinite."""
    if kind in FAMILIES:
        return draw_family(kind, seed)
    drawn = draw(seed, kind)
    return None if drawn is None else drawn[1]


def answers(case: Case, seed: int) -> Iterator[tuple[str, list[str]]]:
    """Yield who answers to one problem, and one word for each answer."""
    truths = truth_of(case)
    svc = lo.SVC(kernel="precomputed", fit_intercept=case.fit_intercept)
    for method in METHODS:
        found = lo.leave_one_out(
            svc, case.K, case.y, sample_weight=case.C, method=method
        )
        yield method, judge(found, truths)
    for call in CALLS:
        yield call, judge_call(call, case, seed)
    for name in CLASSIFIERS:
        yield name, judge_classifier(name, case)


def mirrored_cases(n_cases: int) -> tuple[dict[str, Counter[str]], list[str]]:
    """Judge samples in the mirror: outcomes by who answers, and what is not allowed."""
    outcomes = {name: Counter[str]() for name in MIRRORED}
    bad = []
    for seed in range(n_cases):
        case, asked = draw_mirror(seed)
        for name in MIRRORED:
            words = judge_mirror(name, case, asked)
            outcomes[name].update(words)
            if not set(words) <= {*ALLOWED, "refused"}:
                bad.append(f"mirror seed={seed} {name}: {words}")
    return outcomes, bad


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return small data sets at the edge, by name."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=12) > 0, "a", "b")
    y[:4] = ["a", "b", "a", "b"]
    sets = {f"features of {name}": (s * X, y) for name, s in SCALES.items()}
    sets["features of 1e200"] = (1e200 * X, y)
    sets["two samples"] = (X[:2], y[:2])
    sets["identical samples"] = (np.ones_like(X), y)
    sets["nearly equal samples"] = (X[np.arange(12) // 4] + 1e-9 * X, y)
    sets["rank one"] = (np.outer(X[:, 0], [1.0, 2.0, 3.0]), y)
    sets["random labels"] = (X, rng.permutation(y))
    sets["far from the origin"] = (X + 1e9, y)
    return sets


def questions() -> Iterator[tuple[str, Callable[[Any, Any, Any], Any]]]:
    """Yield what is asked of the public API: (name, function of X, y, weights)."""
    for kernel in ("linear", "rbf"):
        for C in PENALTIES:
            how = {"C": C, "kernel": kernel}
            for model in (
                lo.SVC(**how),
                lo.LPMClassifier(**how),
                lo.LLWClassifier(**how),
            ):
                name = f"{type(model).__name__} {kernel} C={C:g}"
                yield (
                    f"fit {name}",
                    lambda X, y, w, m=model: m.fit(
                        X, y, sample_weight=w
                    ).decision_function(X),
                )
                yield (
                    f"loo {name}",
                    lambda X, y, w, m=model: lo.leave_one_out(m, X, y, sample_weight=w),
                )
            svc = lo.SVC(**how)
            yield (
                f"bounds {kernel} C={C:g}",
                lambda X, y, w, m=svc: lo.loo_bounds(m, X, y, sample_weight=w),
            )
        svc, loom = lo.SVC(kernel=kernel), lo.LOOMClassifier(kernel=kernel)
        yield (
            f"loo LOOM {kernel}",
            lambda X, y, w, m=loom: lo.leave_one_out(m, X, y, sample_weight=w),
        )
        yield (
            f"path {kernel}",
            lambda X, y, w, m=svc: (
                lo.loo_path(m, X, y, Cs=PENALTIES, sample_weight=w).decision_values
            ),
        )
        yield (
            f"search {kernel}",
            lambda X, y, w, m=svc: (
                lo.LooSearchCV(m, {"C": list(PENALTIES)}, refit=False)
                .fit(X, y, sample_weight=w)
                .cv_results_["mean_test_score"]
            ),
        )
        yield (
            f"SVCCV {kernel}",
            lambda X, y, w, k=kernel: (
                lo.SVCCV(kernel=k).fit(X, y, sample_weight=w).predict_proba(X)
            ),
        )


def has_nan(answer: Any) -> bool:
    """Whether a number in the answer is NaN."""
    if isinstance(answer, lo.LooResult):
        parts = (answer.margins, answer.decision_values, answer.lower, answer.upper)
        return any(np.isnan(part).any() for part in parts)
    if isinstance(answer, lo.LooBounds):
        return any(np.isnan(row.value) for row in answer.rows if row.kind == "bound")
    return bool(np.isnan(answer).any())


def ask_all(X: np.ndarray, y: np.ndarray, pipe: Any) -> None:
    """Ask everything of one data set; send (question, outcome, message)."""
    weights = 10.0 ** np.random.default_rng(1).uniform(-6, 6, len(y))
    for name, ask in questions():
        for w in (None, weights):
            title = name + ("" if w is None else ", weights")
            pipe.send((title, *ask_one(ask, X, y, w)))
    pipe.send(None)


def ask_one(ask: Callable[..., Any], X: Any, y: Any, w: Any) -> tuple[str, str]:
    """Return the outcome and, unless it is an answer, the message."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", lo.LeaveoutWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            answer = ask(X, y, w)
        except (ValueError, lo.LeaveoutError) as error:
            return "refused", str(error)[:120]
        except Exception as error:
            return "defect", f"{type(error).__name__}: {error}"[:200]
    return ("defect", "NaN") if has_nan(answer) else ("answered", "")


def edge_cases() -> tuple[dict[str, Counter[str]], list[str], Counter[str]]:
    """Ask every data set in a process of its own, with a time limit for each answer."""
    context = get_context("spawn")
    outcomes, bad, reasons = {}, [], Counter[str]()
    for name, (X, y) in data_sets().items():
        ours, theirs = context.Pipe()
        process = context.Process(target=ask_all, args=(X, y, theirs), daemon=True)
        process.start()
        theirs.close()
        counts = outcomes[name] = Counter[str]()
        while True:
            try:
                told = ours.recv() if ours.poll(TIME_LIMIT) else ("?", "defect", "hang")
            except EOFError:
                told = ("?", "defect", "the process died")
            if told is None:
                break
            counts[told[1]] += 1
            if told[1] == "defect":
                bad.append(f"{name}: {told[0]}: {told[2]}")
                if told[0] == "?":
                    process.kill()
                    break
            elif told[1] == "refused":
                reasons[" ".join(told[2].split()[:6])] += 1
        process.join()
        print(name, dict(counts), flush=True)
    return outcomes, bad, reasons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=12, help="of each kind")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "stress")
    args = parser.parse_args()
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", lo.LeaveoutWarning)
    exact, defects = {}, []
    for kind in (*KINDS, *FAMILIES):
        exact[kind], bad = exact_cases(kind, args.cases)
        defects += bad
        print(kind, sum(exact[kind].values(), Counter()), flush=True)
    mirrored, bad = mirrored_cases(10 * args.cases)
    defects += bad
    print("mirror", sum(mirrored.values(), Counter()), flush=True)
    edges, bad, reasons = edge_cases()
    defects += bad
    by_name = {
        name: sum((found[name] for found in exact.values()), Counter[str]())
        for name in (*METHODS, *CALLS, *CLASSIFIERS)
    }
    totals = sum(by_name.values(), Counter[str]())
    asked = sum(edges.values(), Counter[str]())
    packages = ("leaveout", "numpy", "scipy", "scikit-learn")
    results = {
        "date": date.today().isoformat(),
        "cases_of_each_kind": args.cases,
        "answers": {"total": totals.total(), **totals},
        "by_name": by_name,
        "by_kind": {kind: sum(exact[kind].values(), Counter()) for kind in exact},
        "mirrored": {
            "total": sum(found.total() for found in mirrored.values()),
            **mirrored,
        },
        "questions": {"total": asked.total(), **asked},
        "questions_by_data_set": edges,
        "refused_because": dict(reasons),
        "defects": defects,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(results["answers"], results["questions"], *defects, sep="\n")
    sys.exit(bool(defects))


if __name__ == "__main__":
    main()
