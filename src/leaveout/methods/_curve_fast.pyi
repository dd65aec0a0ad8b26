from enum import IntEnum
from typing import Any

class PathStatus(IntEnum):
    ARRIVED = 0
    FULL = 1
    DRIFTED = 2
    STOOD = 3

def path_work_shape(n: int) -> tuple[int, int]: ...
def trace_path(*args: Any) -> Any: ...
