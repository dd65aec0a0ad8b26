# SPDX-License-Identifier: BSD-3-Clause
import pytest

from leaveout.run._parallel import map_parallel


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_in_order(n_jobs):
    tasks = [(base, 2) for base in range(20)]
    assert list(map_parallel(pow, tasks, n_jobs=n_jobs)) == [i**2 for i in range(20)]


def test_results_come_as_they_are_ready():
    started = []

    def task(i):
        started.append(i)
        return i

    results = map_parallel(task, [(i,) for i in range(5)])
    assert next(results) == 0
    assert len(started) < 5
    results.close()
