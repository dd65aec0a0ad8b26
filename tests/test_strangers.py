# SPDX-License-Identifier: BSD-3-Clause
"""Files from strangers: a few seconds here, as many as wanted with an environment.

LEAVEOUT_FUZZ_SECONDS=600 LEAVEOUT_FUZZ_SEED=7 python -m pytest tests/test_strangers.py
"""

import os
import sys

import numpy as np
import pytest

if sys.platform == "win32":
    pytest.skip("forks and limits of POSIX", allow_module_level=True)

import strangers

SECONDS = float(os.environ.get("LEAVEOUT_FUZZ_SECONDS", "4"))
SEED = int(os.environ.get("LEAVEOUT_FUZZ_SEED", "0"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", strangers.KINDS)
def test_a_file_is_read_or_refused_by_name(tmp_path, kind):
    (outcomes,) = strangers.run(SECONDS / 6, SEED, tmp_path, kinds=(kind,)).values()
    assert sum(outcomes.values()) > 0


def test_an_arrow_file_that_points_outside_of_itself_is_refused(tmp_path):
    """pyarrow follows the offsets of text without a look: a crash."""
    ending, raw = strangers.rows_seeds()[0]
    offsets = np.array([0, 1, 2, 3, 4], dtype=np.int64)
    if offsets.tobytes() not in raw:  # as pandas 2 writes text
        offsets = offsets.astype(np.int32)
    far = offsets.copy()
    far[0] = np.iinfo(far.dtype).min // 2
    path = tmp_path / f"rows{ending}"
    path.write_bytes(raw.replace(offsets.tobytes(), far.tobytes(), 1))
    with pytest.raises(ValueError, match=r"rows.arrow' cannot be read: .*negative of"):
        strangers.read_rows(strangers.open_rows(path, "k", "w"))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([(np.array(3.0), ["u"])], "block 0 of the iterable has 0 dimensions"),
        ([([[1.0], [2.0, 3.0]], ["u", "v"])], "block 0 .* rows of different lengths"),
        ([(np.zeros((2, 0)), ["u", "v"])], "block 0 .* cannot be used: Found array wi"),
        ([([[10**400]], ["u"])], "row 0 of block 0 .* is not a number: int too large"),
        ([(np.eye(2), [0, 1], [[1.0], [1.0, 2.0]])], "sample_weight in block 0"),
    ],
)
def test_odd_blocks_are_refused_by_number(blocks, message):
    with pytest.raises(ValueError, match=message):
        strangers.read_rows(strangers.open_rows(blocks))


def test_a_header_that_is_no_python_is_refused(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.eye(4))
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"{'descr'", b'{{{{("""', 1))
    with pytest.raises(ValueError, match=r"rows.npy' cannot be mapped to memory"):
        strangers.open_rows(path, [0, 1, 0, 1])


@pytest.mark.filterwarnings("error")
def test_rows_whose_variance_overflows(rng):
    """Squares of 1e200 raised OverflowError between blocks, and warned within."""
    X = rng.normal(size=(40, 2))
    X[:20] *= 1e200
    blocks = [(X[:20], np.arange(20) % 2), (X[20:], np.arange(20) % 2)]
    assert strangers.read_rows(strangers.open_rows(blocks, rows_at_once=10)) == "read"
    with pytest.raises(ValueError, match="gamma='scale' needs the variance of X"):
        strangers.lo.FeatureSVC(features="fourier", gamma="scale").fit(blocks)
