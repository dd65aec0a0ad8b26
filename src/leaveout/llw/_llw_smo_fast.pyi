from leaveout._typing import FloatArray

def llw_smo(
    K: FloatArray,
    diag: FloatArray,
    upper: FloatArray,
    alpha: FloatArray,
    G: FloatArray,
    tol: float,
    max_steps: int,
) -> tuple[int, float]: ...
