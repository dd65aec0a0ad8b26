from enum import IntEnum

from leaveout._typing import FloatArray, IntArray

TILE_ROWS: int

class Formula(IntEnum):
    LINEAR = 0
    POLY = 1
    SIGMOID = 2
    RBF = 3
    LAPLACIAN = 4

def fill_rows(
    X: FloatArray | None,
    Y: FloatArray | None,
    squares_X: FloatArray,
    squares_Y: FloatArray,
    formula: Formula,
    gamma: float,
    degree: int,
    coef0: float,
    symmetric: bool,
    start: int,
    stop: int,
    K: FloatArray,
) -> int: ...
def nearest_to_mean(X: FloatArray) -> int: ...
def first_equal(X: FloatArray, first: IntArray) -> int: ...
