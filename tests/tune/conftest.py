# SPDX-License-Identifier: BSD-3-Clause
import pytest
from sklearn.datasets import make_moons


@pytest.fixture
def data():
    return make_moons(30, noise=0.35, random_state=3)
