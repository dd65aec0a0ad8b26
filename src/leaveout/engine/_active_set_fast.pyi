import numpy as np
from numpy.typing import NDArray

from leaveout._typing import FloatArray, IntArray

def run_active_set(
    K: FloatArray,
    diag: FloatArray,
    y: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    intercept: bool,
    shift: float,
    beta: FloatArray,
    F: FloatArray,
    members: IntArray,
    n_members: int,
    L: FloatArray,
    work: FloatArray,
    place: IntArray,
    pivots: NDArray[np.intc],
    tol: float,
    max_steps: int,
    max_enter: int,
) -> tuple[int, float, int, float]: ...
