from leaveout._typing import BoolArray, FloatArray, IntArray

SLOTS_AT_ONCE: int

class Tableau:
    n_free: int
    n_slots: int
    reached_bounds: bool
    rows: IntArray
    T: FloatArray
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
    def add(self, rows: IntArray) -> None: ...
    def project(self, part: slice) -> None: ...
    def fill(self, part: slice) -> None: ...
    def finish(self) -> None: ...
    def first_moves(self, pilots: IntArray) -> FloatArray: ...
    def sort_far(self, n_walks: int) -> None: ...
