from enum import IntEnum

from leaveout._typing import FloatArray, IntArray, StateArray

class Stage(IntEnum):
    REFUSED = 0
    FOUND = 1
    SOLVED = 2
    LEFT_OUT = 3

class Short:
    stage: Stage
    beta: FloatArray
    F: FloatArray
    f: FloatArray
    state: StateArray
    members: IntArray
    lower: FloatArray
    upper: FloatArray
    settled_by: StateArray
    top: float
    total: float
    b: float
    residual: float
    gap: float
    primal: float
    n_steps: int
    n_walks: int
    n_events: int
    def __init__(
        self,
        K: FloatArray,
        y: FloatArray,
        C: FloatArray,
        start: FloatArray | None,
        signs: FloatArray,
        labels_only: bool,
    ) -> None: ...
