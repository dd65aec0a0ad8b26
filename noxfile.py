# SPDX-License-Identifier: BSD-3-Clause
"""Checks in fresh environments: oldest and newest packages, and the built package.

``nox -s "tests-3.12(newest)" -- tests/lp`` runs some tests on one Python with one set
of packages, ``nox -s package`` tries sdist and wheel.
"""

from pathlib import Path

import nox

nox.options.default_venv_backend = "uv"

USER_EXTRAS = "cli,dask,parquet,plot"
# Old packages warn of the future of new ones, and pages print numbers as NumPy 2 does.
ON_OLD_PACKAGES = [
    *("-W", "default::DeprecationWarning", "-W", "default::FutureWarning"),
    "--ignore=tests/test_docs.py",
]
LEAVE_OUT = """
import leaveout as lo
result = lo.leave_one_out(lo.SVC(kernel="linear"), [[0], [1], [3], [4]], [0, 0, 1, 1])
assert result.certified.all() and result.error == 0.0
"""


@nox.session(python=["3.11", "3.12", "3.13"])
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
def package(session: nox.Session) -> None:
    """Build sdist and wheel of the last commit; install and use the wheel elsewhere."""
    dist = Path(session.create_tmp()).resolve() / "dist"
    session.install("twine")
    session.run("uv", "build", "--clear", "--out-dir", str(dist), external=True)
    (sdist,), (wheel,) = dist.glob("*.tar.gz"), dist.glob("*.whl")
    session.run("twine", "check", "--strict", str(sdist), str(wheel))
    session.install("--force-reinstall", str(wheel))
    session.chdir(dist)
    session.run("python", "-c", LEAVE_OUT)
    session.run("leaveout", "--help", success_codes=[1, 2])  # asks for the extra cli
    session.install(f"leaveout[cli] @ {wheel.as_uri()}")
    session.run("leaveout", "--help")
    session.run("leaveout", "select")
