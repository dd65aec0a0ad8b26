from leaveout._typing import FloatArray, IntArray

def run_active_set(
    K: FloatArray,
    diag: FloatArray,
    y: FloatArray,
    offsets: FloatArray,
    levels: FloatArray,
    intercept: bool,
    beta: FloatArray,
    F: FloatArray,
    members: IntArray,
    tol: float,
    max_steps: int,
    max_enter: int,
) -> tuple[int, int, float]: ...
