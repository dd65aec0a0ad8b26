from enum import IntEnum
from typing import Any

from leaveout._typing import BoolArray, FloatArray, IntArray

FOLDS_AT_ONCE: int

class Status(IntEnum):
    DONE = 0
    STOPPED = 1
    NOT_NEAR = 2
    TOO_LONG = 3
    FAILED = 4
    STUCK = 5

class Tableau:
    n_free: int
    n_slots: int
    rows: IntArray
    def __init__(
        self,
        K: FloatArray,
        y: FloatArray,
        offsets: FloatArray,
        levels: FloatArray,
        beta: FloatArray,
        f: FloatArray,
        free: BoolArray,
        signs: FloatArray,
        intercept: bool,
    ) -> None: ...
    def extend(self, rows: IntArray) -> None: ...
    def first_moves(self, pilots: IntArray) -> FloatArray: ...
    def run(self, *args: Any) -> None: ...
