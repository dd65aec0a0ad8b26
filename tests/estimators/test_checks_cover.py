# SPDX-License-Identifier: BSD-3-Clause
"""Every classifier we export is put through scikit-learn's checks."""

import importlib.util
from pathlib import Path

import pytest
from sklearn.base import is_classifier

import leaveout as lo

HERE = Path(__file__).parents[1]
# A pretrained regressor of errors, with no samples to fit on: the checks do not apply.
NOT_CHECKED = {"LooPredictor"}


def _settings(path):
    """SETTINGS of a test module: the estimators that its checks run on."""
    spec = importlib.util.spec_from_file_location(f"checks_of_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SETTINGS


def _exported_estimators():
    found = {name: getattr(lo, name) for name in lo.__all__ if name[0].isupper()}
    return {name: kind for name, kind in found.items() if hasattr(kind, "fit")}


@pytest.fixture(scope="module")
def checked():
    paths = sorted(HERE.glob("*/test_*_checks.py"))
    return [estimator for path in paths for estimator in _settings(path)]


def test_every_exported_classifier_is_checked(checked):
    names = {type(estimator).__name__ for estimator in checked}
    assert set(_exported_estimators()) - NOT_CHECKED == names


def test_what_is_checked_is_a_classifier(checked):
    assert all(is_classifier(estimator) for estimator in checked)


def test_each_check_module_runs_its_settings():
    for path in HERE.glob("*/test_*_checks.py"):
        assert "@parametrize_with_checks(SETTINGS" in path.read_text(), path.name
