# SPDX-License-Identifier: BSD-3-Clause
"""Files and blocks of rows that the fuzzer of tests/fuzz_files.py found."""

import sys

import numpy as np
import pytest

from leaveout import FeatureSVC

if sys.platform == "win32":
    pytest.skip("forks and limits of POSIX", allow_module_level=True)

import fuzz_files
from fuzz_files import open_rows, read_rows


def test_arrow_offsets_outside_of_the_file_are_refused(tmp_path):
    """pyarrow follows the offsets of text unchecked: a crash."""
    ending, raw = fuzz_files.rows_seeds()[0]
    offsets = np.array([0, 1, 2, 3, 4], dtype=np.int64)
    if offsets.tobytes() not in raw:  # as pandas 2 writes text
        offsets = offsets.astype(np.int32)
    far = offsets.copy()
    far[0] = np.iinfo(far.dtype).min // 2
    path = tmp_path / f"rows{ending}"
    path.write_bytes(raw.replace(offsets.tobytes(), far.tobytes(), 1))
    with pytest.raises(ValueError, match=r"rows.arrow' cannot be read: .*negative of"):
        read_rows(open_rows(path, "k", "w"))


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
        read_rows(open_rows(blocks))


def test_npy_header_that_is_not_python_is_refused(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, np.eye(4))
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"{'descr'", b'{{{{("""', 1))
    with pytest.raises(ValueError, match=r"rows.npy' cannot be mapped to memory"):
        open_rows(path, [0, 1, 0, 1])


@pytest.mark.filterwarnings("error")
def test_rows_whose_variance_overflows(rng):
    """Squares of 1e200 raised OverflowError between blocks, and warned within."""
    X = rng.normal(size=(40, 2))
    X[:20] *= 1e200
    blocks = [(X[:20], np.arange(20) % 2), (X[20:], np.arange(20) % 2)]
    assert read_rows(open_rows(blocks, rows_at_once=10)) == "read"
    with pytest.raises(ValueError, match="gamma='scale' needs the variance of X"):
        FeatureSVC(features="fourier", gamma="scale").fit(blocks)
