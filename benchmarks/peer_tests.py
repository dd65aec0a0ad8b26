# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's SVM tests on our SVC: which pass, and why others cannot.

    python benchmarks/peer_tests.py

runs tests/nightly/test_peer.py and writes results/peer_tests/results.json:
``passed``, ``with_reason`` (test to reason; each must fail) and ``failed`` (should be
empty), the number of tests of the module that are about other classes, and versions.
"""

from __future__ import annotations

import json
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests" / "nightly" / "test_peer.py"


class Recorder:
    """Listens to pytest."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[str] = []
        self.with_reason: dict[str, str] = {}
        self.not_about_svc = 0

    def pytest_collection_finish(self, session: Any) -> None:
        """Note how many tests were left out."""
        self.not_about_svc = session.items[0].module.N_OTHERS

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note how a test ended."""
        name = report.nodeid.split("::")[-1]
        if name == "test_every_reason_belongs_to_a_test":
            return
        if hasattr(report, "wasxfail") and report.skipped:
            self.with_reason[name] = report.wasxfail
        elif report.failed:
            self.failed.append(name)
        elif report.when == "call" and report.passed:
            self.passed.append(name)


def main() -> None:
    recorder = Recorder()
    pytest.main(
        ["-q", "--no-header", "-r", "N", "-m", "", str(TESTS)], plugins=[recorder]
    )
    results = {
        "date": date.today().isoformat(),
        "module": "sklearn.svm.tests.test_svm",
        "counts": {
            "passed": len(recorder.passed),
            "with_reason": len(recorder.with_reason),
            "failed": len(recorder.failed),
            "not_about_svc": recorder.not_about_svc,
        },
        "passed": sorted(recorder.passed),
        "with_reason": dict(sorted(recorder.with_reason.items())),
        "failed": sorted(recorder.failed),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("leaveout", "scikit-learn", "numpy")},
        },
    }
    out = HERE / "results" / "peer_tests" / "results.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print(results["counts"])
    sys.exit(bool(recorder.failed))


if __name__ == "__main__":
    main()
