# SPDX-License-Identifier: BSD-3-Clause
"""The properties of properties.py on a few seeds; `make fuzz` tries many more."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties import PROPERTIES

pytestmark = pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")


@pytest.mark.parametrize("name", PROPERTIES)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_property(name, seed):
    PROPERTIES[name](seed)
