from enum import IntEnum
from typing import Any

class End(IntEnum):
    EPS_KKT = 0
    PROVED = 1
    TOO_LONG = 2

class Condition(IntEnum):
    NONE = 0
    AUXILIARY = 1
    BALL = 2

def solve_left_out(*args: Any) -> tuple[int, int, int]: ...
