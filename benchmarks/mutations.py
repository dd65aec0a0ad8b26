# SPDX-License-Identifier: BSD-3-Clause
"""Break one line of mathematics at a time, and see whether the tests notice.

    python benchmarks/mutations.py [--only 3 17] [--jobs 2]

Each mutation replaces one text in a package, a sign, a bound, an index or a tolerance,
in a temporary copy of the tree; a changed kernel is compiled there. The tests beside it
then run until the first failure: ``killed`` if one fails or they do not end in time,
``survived`` if all pass. The run stops if a text is not found exactly once, or if tests
fail without a mutation. After a run of all mutations the outcomes are stored in
results/mutations/results.json. Needed: Cython and a C compiler.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from time import monotonic
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "mutations" / "results.json"
TIMEOUT = 900.0
NOT_COPIED = (".git", ".venv", "build", "results", "_build", "docs", "__pycache__")
DIRECTIVES = ("boundscheck", "wraparound", "initializedcheck")
C_FLAGS = ("-O2", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-w")
# An editable install would find the package before PYTHONPATH does.
SITECUSTOMIZE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "Mesonpy" not in type(f).__name__]
"""


class Mutation(NamedTuple):
    """A text in src/leaveout/<package> and what replaces it."""

    package: str
    old: str
    new: str
    tests: tuple[str, ...] = ()  # in the folder tests; that of the package if empty


ESTIMATORS = ("llw", "estimators/test_llw.py")
MUTATIONS = [
    Mutation(
        "engine",
        'searchsorted(cumulative, level - slack, side="left")',
        'searchsorted(cumulative, level + slack, side="left")',
    ),
    Mutation(
        "engine",
        "can_rise = levels[:, :-1] - beta[:, None] > near",
        "can_rise = levels[:, 1:] - beta[:, None] > near",
    ),
    Mutation(
        "engine",
        "self.T[a, b] -= self.ones[a] * self.ones[b]",
        "self.T[a, b] += self.ones[a] * self.ones[b]",
    ),
    Mutation("engine", "F[k] -= move * row[k]", "F[k] += move * row[k]"),
    Mutation(
        "engine",
        "return w.high[s] - w.x[s] if rate > 0.0 else w.x[s] - w.low[s]",
        "return w.high[s] - w.x[s] if rate < 0.0 else w.x[s] - w.low[s]",
    ),
    Mutation(
        "engine",
        "lower = <float>(shift[a] + down[a]) - margin",
        "lower = 1e9",
    ),
    Mutation(
        "engine",
        "return max(sqrt(square), members / OF_MEMBERS()) if low == high",
        "return members / OF_MEMBERS() if low == high",
    ),
    Mutation(
        "engine",
        "elif b - can_fall(s, i) > most:",
        "elif can_fall(s, i) - b > most:",
    ),
    Mutation(
        "methods",
        "weighted_median_interval(at - reach, C, level)",
        "weighted_median_interval(at + reach, C, level)",
    ),
    Mutation(
        "methods",
        "2.0 * float((K.diagonal()[:, None] - K).max())",
        "1.0 * float((K.diagonal()[:, None] - K).max())",
    ),
    Mutation(
        "methods",
        "1.0 / np.maximum(np.diag(inverse)[: free.size], 0.0)",
        "1.0 * np.maximum(np.diag(inverse)[: free.size], 0.0)",
    ),
    Mutation("methods", "return F + g_r", "return F - g_r"),
    Mutation("methods", "if v - e <= 0.0:", "if v + e <= 0.0:"),
    Mutation("methods", "rate[0] = rise - p.c[i]", "rate[0] = rise"),
    Mutation(
        "methods",
        "gap = (hinge - alpha * short).sum(axis=1)",
        "gap = (hinge + alpha * short).sum(axis=1)",
    ),
    Mutation(
        "lp",
        "weighted_median_interval(y - g, C, float(C[y > 0].sum()))",
        "weighted_median_interval(y + g, C, float(C[y > 0].sum()))",
    ),
    Mutation(
        "lp",
        "towards = -1.0 if sign * walk.rho[c] > 0.0 else 1.0",
        "towards = -1.0 if sign * walk.rho[c] < 0.0 else 1.0",
    ),
    Mutation(
        "lp",
        "np.fill_diagonal(M, (1.0 - problem.nu) * problem.K.diagonal())",
        "np.fill_diagonal(M, (1.0 + problem.nu) * problem.K.diagonal())",
    ),
    Mutation(
        "llw",
        "Problem(problem.K, y, 0.5 * problem.C)",
        "Problem(problem.K, y, problem.C)",
        ESTIMATORS,
    ),
    Mutation(
        "llw",
        "np.minimum(high, -_sum_of_others(low))",
        "np.minimum(high, _sum_of_others(low))",
        ESTIMATORS,
    ),
    Mutation(
        "llw",
        "/ np.sqrt(Q / (Q - 1) ** 3)",
        "/ np.sqrt(Q / (Q - 1) ** 2)",
        (*ESTIMATORS, "assess/test_bounds.py"),
    ),
    Mutation(
        "llw",
        "bounded = self.high[e] - self.x[e] < self.x[e] - self.low[e]",
        "bounded = self.high[e] - self.x[e] > self.x[e] - self.low[e]",
        ESTIMATORS,
    ),
    Mutation(
        "llw",
        "elif -slope > most and s.alpha[e] > 0.0",
        "elif -slope > most and s.alpha[e] < 0.0",
        ESTIMATORS,
    ),
    Mutation(
        "loo",
        "sums[:, j] -= values[:, k]",
        "sums[:, j] += values[:, k]",
        ("loo", "estimators/test_svc.py"),
    ),
    Mutation(
        "loo",
        '"upper": _minus_best_other(upper, lower, target.codes)',
        '"upper": _minus_best_other(upper, upper, target.codes)',
    ),
    Mutation("kernel", "1.0 / (n_features * variance)", "1.0 / variance"),
    Mutation("kernel", "PSD_TOLERANCE = 1e-12", "PSD_TOLERANCE = 1e-2"),
    Mutation("large", "loss = q * q * t", "loss = q * t"),
    Mutation(
        "large",
        "right_above = min(right_above, 1.0 + BEYOND + noise)",
        "right_above = min(right_above, 0.5 + BEYOND + noise)",
    ),
    Mutation(
        "tune",
        "1 / (n_negative + 2)\n",
        "1 / (n_negative + 1)\n",
        ("tune/test_calibration.py",),
    ),
    Mutation(
        "tune",
        "near = scores >= scores[best] - (",
        "near = scores >= scores[best] + (",
    ),
]


def find(mutation: Mutation, tree: Path = ROOT) -> Path:
    """Return the one file of the package that holds the text, once."""
    folder = tree / "src" / "leaveout" / mutation.package
    paths = [*folder.glob("*.py"), *folder.glob("*.pyx")]
    counts = {path: path.read_text().count(mutation.old) for path in paths}
    if sum(counts.values()) != 1:
        where = {path.name: n for path, n in counts.items() if n}
        raise SystemExit(
            f"{mutation.package}: {mutation.old!r} must be found once, not in {where}"
        )
    return max(counts, key=lambda path: counts[path])


def copy_tree(source: Path, target: Path) -> None:
    """Copy what tests need, with the compiled kernels beside their sources."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*NOT_COPIED))
    for path in (target / "src" / "leaveout").rglob("*.pyx"):
        if list(path.parent.glob(f"{path.stem}.*.so")):
            continue
        spec = importlib.util.find_spec(f"leaveout.{path.parent.name}.{path.stem}")
        if spec is None or spec.origin is None:
            raise SystemExit(f"{path.stem} is not compiled: run make test first")
        shutil.copy2(spec.origin, path.parent)
    (target / "sitecustomize.py").write_text(SITECUSTOMIZE)


def compile_kernel(path: Path) -> None:
    """Compile a changed .pyx in place of the compiled one."""
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{path.parents[1] / 'engine'}"]
    directives = [f"-X{name}=False" for name in DIRECTIVES]
    code, suffix = path.with_suffix(".c"), sysconfig.get_config_var("EXT_SUFFIX")
    cython = [sys.executable, "-m", "cython", "-3", *directives, "-Xcdivision=True"]
    subprocess.run([*cython, str(path), "-o", str(code)], check=True)
    library = path.with_name(path.stem + suffix)
    compiler = os.environ.get("CC", "cc")
    command = [compiler, *C_FLAGS, *includes, str(code), "-o", str(library)]
    subprocess.run(command, check=True)


def run_tests(tree: Path, tests: tuple[str, ...]) -> tuple[str, str]:
    """Return "passed", "failed" or "no end", and the last line of pytest."""
    path = os.pathsep.join([str(tree), str(tree / "src")])
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, *(f"tests/{name}" for name in tests)],
            cwd=tree,
            env=os.environ | threads | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return "no end", ""
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    last = (failed or done.stdout.splitlines()[-1:] or [done.stderr[-200:]])[0]
    return "failed" if done.returncode else "passed", last[:200]


def tests_of(mutation: Mutation) -> tuple[str, ...]:
    return mutation.tests or (mutation.package,)


def check_baseline(tests: tuple[str, ...], base: Path) -> None:
    """Stop if tests fail without a mutation."""
    outcome, last = run_tests(base, tests)
    if outcome != "passed":
        raise SystemExit(f"without a mutation {' '.join(tests)}: {outcome}\n{last}")


def attempt(number: int, base: Path) -> dict[str, object]:
    """Apply a mutation to a copy of its own and run its tests."""
    mutation, started = MUTATIONS[number], monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(base, tree)
        path = find(mutation, tree)
        path.write_text(path.read_text().replace(mutation.old, mutation.new))
        if path.suffix == ".pyx":
            compile_kernel(path)
        outcome, last = run_tests(tree, tests_of(mutation))
    word = "survived" if outcome == "passed" else "killed"
    seconds = round(monotonic() - started)
    print(f"{number:2} {word:8} {seconds:4} s  {path.name}: {mutation.new.strip()}")
    print(f"     {last}", flush=True)
    return {
        "file": f"{mutation.package}/{path.name}",
        **mutation._asdict(),
        "outcome": word,
        "by": last,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutations")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at a time")
    args = parser.parse_args()
    for mutation in MUTATIONS:
        find(mutation)
    numbers = args.only or list(range(len(MUTATIONS)))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        base = Path(folder) / "base"
        copy_tree(ROOT, base)
        every = dict.fromkeys(tests_of(MUTATIONS[number]) for number in numbers)
        list(pool.map(lambda tests: check_baseline(tests, base), every))
        found = list(pool.map(lambda number: attempt(number, base), numbers))
    survived = [row for row in found if row["outcome"] == "survived"]
    print(f"{len(found) - len(survived)} killed, {len(survived)} survived")
    if not args.only:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        stored = {"date": date.today().isoformat(), "mutations": found}
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
    sys.exit(bool(survived))


if __name__ == "__main__":
    main()
