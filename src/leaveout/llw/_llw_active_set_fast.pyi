from leaveout._typing import FloatArray, IntArray

def run_llw_active_set(
    K: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    G: FloatArray,
    M: IntArray,
    n_members: int,
    L: FloatArray,
    shift: float,
    tol: float,
    max_steps: int,
) -> tuple[int, int, int]: ...
