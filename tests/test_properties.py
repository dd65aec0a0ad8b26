# SPDX-License-Identifier: BSD-3-Clause
"""The properties of nightly/properties.py on three seeds each."""

import pytest
from nightly.properties import PROPERTIES


@pytest.mark.filterwarnings("ignore::leaveout.LeaveoutWarning")
@pytest.mark.parametrize("name", PROPERTIES)
def test_property(name):
    for seed in (1, 2, 3):
        PROPERTIES[name](seed)
