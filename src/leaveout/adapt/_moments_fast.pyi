from leaveout._typing import FloatArray, IntArray

def fold_moments(
    values: FloatArray,
    centre: FloatArray,
    members: IntArray,
    begin: IntArray,
    share: float,
    mean: FloatArray,
    variance: FloatArray,
) -> tuple[FloatArray, int]: ...
