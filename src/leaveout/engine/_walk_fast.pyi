from enum import IntEnum
from typing import Any

class Status(IntEnum):
    DONE = 0
    STOPPED = 1
    NEEDS_COLUMN = 2
    TOO_LONG = 3
    FAILED = 4
    STUCK = 5

def work_shape(n: int, capacity: int) -> tuple[int, int]: ...
def run_walks(*args: Any) -> None: ...
def fill_factors(*args: Any) -> None: ...
def write_columns(*args: Any) -> None: ...
