import numpy as np

from leaveout._typing import FloatArray

def first_event(
    alpha: FloatArray,
    rate: FloatArray,
    slope: FloatArray,
    slope_rate: FloatArray,
    box: FloatArray,
    state: np.ndarray,
) -> tuple[float, int]: ...
