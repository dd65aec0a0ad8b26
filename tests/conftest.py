# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures and settings of all tests. Warnings are errors; see pyproject.toml."""

import numpy as np
import pytest
from hypothesis import settings

# No deadline, because the first example may import a library or build a cache.
settings.register_profile("leaveout", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("leaveout")


@pytest.fixture
def rng():
    """Return a generator with the same seed in every test."""
    return np.random.default_rng(20080101)


@pytest.fixture(autouse=True)
def start_workers_for_small_work(monkeypatch):
    """After the first task of a search, so that tests with n_jobs=2 use processes."""
    monkeypatch.setattr("leaveout.run._parallel.SECONDS_WORTH_WORKERS", 0.0)
