from enum import IntEnum

import numpy as np

from leaveout._typing import FloatArray, IntArray

class Status(IntEnum):
    DONE = 0
    NEEDS_COLUMN = 1
    LOST = 2

def padded(n: int) -> int: ...

class FadingWalk:
    n_pivots: int
    pending: int
    left: float
    quantities: FloatArray
    def __init__(
        self,
        x: FloatArray,
        low: FloatArray,
        high: FloatArray,
        state: np.ndarray,
        upper: FloatArray,
        capacity: int,
    ) -> None: ...
    def aim(self, rates: FloatArray, noise: float) -> None: ...
    def fade(self, e: int, columns: FloatArray, where: IntArray) -> int: ...
    def free(self, e: int) -> None: ...
    def exchange(self, e: int, columns: FloatArray, where: IntArray) -> int: ...
    def run(self, columns: FloatArray, where: IntArray) -> int: ...
    def apply(self, column: FloatArray) -> None: ...
