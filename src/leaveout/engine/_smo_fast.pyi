from leaveout._typing import FloatArray

def smo_with_intercept(
    K: FloatArray,
    diag: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    beta: FloatArray,
    F: FloatArray,
    tol: float,
    max_steps: int,
) -> tuple[int, float]: ...
def smo_without_intercept(
    K: FloatArray,
    diag: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    beta: FloatArray,
    F: FloatArray,
    tol: float,
    max_steps: int,
) -> tuple[int, float]: ...
