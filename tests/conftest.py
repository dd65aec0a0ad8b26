# SPDX-License-Identifier: BSD-3-Clause
"""What all tests share. Warnings are errors: see pyproject.toml."""

import numpy as np
import pytest
from hypothesis import settings

# No deadline: the first example of a test may load a library or build a cache.
settings.register_profile("leaveout", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("leaveout")


@pytest.fixture
def rng():
    """A generator with the same seed in every test."""
    return np.random.default_rng(20080101)
