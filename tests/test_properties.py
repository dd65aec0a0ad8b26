# SPDX-License-Identifier: BSD-3-Clause
"""The properties of nightly/properties.py: three seeds each, more in nightly runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly.properties import PROPERTIES

pytestmark = pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")


@pytest.mark.parametrize("name", PROPERTIES)
def test_property(name):
    for seed in (1, 2, 3):
        PROPERTIES[name](seed)


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROPERTIES)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_property_on_more_seeds(name, seed):
    PROPERTIES[name](seed)
