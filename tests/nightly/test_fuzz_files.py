# SPDX-License-Identifier: BSD-3-Clause
"""Random, mutated and hostile files against all readers.

LEAVEOUT_FUZZ_SECONDS=600 LEAVEOUT_FUZZ_SEED=7 sets how long and which files.
"""

import os
import sys

import pytest

if sys.platform == "win32":
    pytest.skip("forks and limits of POSIX", allow_module_level=True)

import fuzz_files

SECONDS = float(os.environ.get("LEAVEOUT_FUZZ_SECONDS", "60")) / len(fuzz_files.KINDS)
SEED = int(os.environ.get("LEAVEOUT_FUZZ_SEED", "0"))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", fuzz_files.KINDS)
def test_file_is_read_or_refused_by_name(kind):
    assert fuzz_files.run(kind, SECONDS, SEED)
