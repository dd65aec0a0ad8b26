import numpy as np

from leaveout._typing import FloatArray

def sum_band(
    f: FloatArray,
    codes: np.ndarray,
    positive: np.ndarray,
    negative: np.ndarray,
    weight: FloatArray,
    tau: FloatArray,
    share: FloatArray,
    band: np.ndarray,
    sums: FloatArray,
    mass: FloatArray,
    counts: np.ndarray,
) -> None: ...
