# SPDX-License-Identifier: BSD-3-Clause
"""Files from strangers: a few seconds here, as many as wanted with an environment.

LEAVEOUT_FUZZ_SECONDS=600 LEAVEOUT_FUZZ_SEED=7 python -m pytest tests/test_strangers.py
"""

import os
import sys

import pytest

if sys.platform == "win32":
    pytest.skip("forks and limits of POSIX", allow_module_level=True)

import strangers

SECONDS = float(os.environ.get("LEAVEOUT_FUZZ_SECONDS", "6"))
SEED = int(os.environ.get("LEAVEOUT_FUZZ_SEED", "0"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["csv", "svmlight", "parquet", "model"])
def test_a_file_is_read_or_refused_by_name(tmp_path, kind):
    (outcomes,) = strangers.run(SECONDS / 4, SEED, tmp_path, kinds=(kind,)).values()
    assert sum(outcomes.values()) > 0
