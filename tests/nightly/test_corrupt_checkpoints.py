# SPDX-License-Identifier: BSD-3-Clause
import corrupt_checkpoints
import pytest

pytestmark = pytest.mark.nightly


def test_corrupt_file_is_refused_or_gives_the_same(tmp_path):
    records = corrupt_checkpoints.run_trials(1000, 1, tmp_path)
    assert {record["outcome"] for record in records} == {"same", "refused"}
