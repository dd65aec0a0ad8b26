from enum import IntEnum
from typing import Any

from numpy.typing import NDArray

from leaveout._typing import FloatArray, IntArray

TILE_ROWS: int

class Formula(IntEnum):
    LINEAR = 0
    POLY = 1
    SIGMOID = 2
    RBF = 3
    LAPLACIAN = 4
    SQUARES = 5

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
def is_finite(X: FloatArray) -> bool: ...
def is_symmetric(K: FloatArray) -> bool: ...
def squared_norms(X: FloatArray) -> FloatArray: ...

class FoldGram:
    def load(
        self,
        Z: FloatArray,
        formula: Formula,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        scale: float = 1.0,
        origin: int = -1,
        given: bool = False,
        factor: FloatArray | None = None,
        fill: FloatArray | None = None,
    ) -> None: ...
    def arrange(self, order: IntArray) -> None: ...
    def square(self, k: int, K: FloatArray | None = None) -> tuple[FloatArray, int]: ...
    def products(
        self, first: int, stop: int, start: int, beta: FloatArray, exact: bool = True
    ) -> tuple[FloatArray, FloatArray | None]: ...

def squared_differences(Z: NDArray[Any], out: NDArray[Any]) -> None: ...
def nearest_to_mean(X: FloatArray) -> int: ...
def first_equal(X: FloatArray, first: IntArray) -> int: ...
