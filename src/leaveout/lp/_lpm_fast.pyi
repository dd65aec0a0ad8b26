from enum import IntEnum
from typing import Any

class Status(IntEnum):
    DONE = 0
    TOO_LONG = 1
    FAILED = 2

def work_sizes(n: int, m: int, capacity: int) -> tuple[int, int]: ...
def leave_out_rows(*args: Any) -> None: ...
