from leaveout._typing import FloatArray

def smo_with_intercept(
    K: FloatArray,
    diag: FloatArray,
    y: FloatArray,
    offsets: FloatArray,
    levels: FloatArray,
    beta: FloatArray,
    F: FloatArray,
    tol: float,
    max_steps: int,
) -> tuple[int, float]: ...
def smo_without_intercept(
    K: FloatArray,
    diag: FloatArray,
    y: FloatArray,
    offsets: FloatArray,
    levels: FloatArray,
    beta: FloatArray,
    F: FloatArray,
    tol: float,
    max_steps: int,
) -> tuple[int, float]: ...
