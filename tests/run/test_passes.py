# SPDX-License-Identifier: BSD-3-Clause
"""Passes: results in order, the same bits for any number of threads."""

import numpy as np
import pytest

from leaveout.run._parallel import map_in_order, sum_in_order


class Total:
    def __init__(self, value):
        self.value = value

    def add(self, other):
        self.value = self.value + other.value


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_order(n_threads):
    items = range(40)
    assert list(map_in_order(lambda x: -x, items, n_threads)) == [-x for x in items]


def test_sums_do_not_depend_on_threads(rng):
    parts = list(rng.standard_normal((30, 7)) * 10.0 ** rng.integers(-8, 8, (30, 1)))
    sums = [sum_in_order(Total, parts, n).value for n in (1, 2, 3)]
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], sums[2])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_ends_the_pass(n_threads):
    seen = []

    def fail(x):
        seen.append(x)
        if x == 3:
            raise ValueError("row 3")
        return Total(x)

    with pytest.raises(ValueError, match="row 3"):
        sum_in_order(fail, range(1000), n_threads)
    assert len(seen) < 20


def test_no_rows():
    with pytest.raises(ValueError, match="no rows"):
        sum_in_order(Total, [], 1)
