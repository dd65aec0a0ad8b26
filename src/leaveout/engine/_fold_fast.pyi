from leaveout._typing import FloatArray, IntArray, StateArray

class FoldProblem:
    def __init__(
        self,
        y: FloatArray,
        offsets: FloatArray,
        levels: FloatArray,
        beta: FloatArray,
        below: FloatArray,
        above: FloatArray,
        intercept: bool,
    ) -> None: ...

class FoldWork:
    order: IntArray
    beta: FloatArray
    levels: FloatArray
    F: FloatArray
    M: IntArray
    n_near: int
    n_bounded: int
    n_present: int
    n_free: int
    n_steps: int
    tol: float
    worst: float
    top: float
    reach: float
    size: float
    b: float
    any_free: bool
    def __init__(self, n: int, n_levels: int) -> None: ...
    def begin(
        self,
        problem: FoldProblem,
        place: StateArray,
        rows: IntArray,
        down: float,
        up: float,
        change: FloatArray | None = None,
    ) -> None: ...
    def run(
        self,
        K: FloatArray,
        pull: FloatArray,
        tolerance: float,
        rounding: float,
        max_steps: int,
    ) -> None: ...
    def values(self, n_left: int) -> FloatArray: ...
    def find_unclear(
        self, products: FloatArray, errors: FloatArray | None, first: int
    ) -> list[int]: ...
    def find_unknown(
        self, values: FloatArray, errors: FloatArray, K: FloatArray, distance: float
    ) -> list[int]: ...
