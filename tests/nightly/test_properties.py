# SPDX-License-Identifier: BSD-3-Clause
"""The properties on more seeds; `make fuzz` draws new ones until its time is up."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly.properties import PROPERTIES

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning"),
]


@pytest.mark.parametrize("name", PROPERTIES)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32 - 1))
def test_property(name, seed):
    PROPERTIES[name](seed)
