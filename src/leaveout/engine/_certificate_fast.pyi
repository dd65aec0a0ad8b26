from leaveout._typing import FloatArray, IntArray

def measure(
    y: FloatArray,
    offsets: FloatArray,
    levels: FloatArray,
    beta: FloatArray,
    f: FloatArray,
    b: float,
) -> tuple[float, float, float, float, float]: ...
def settle_members(
    offsets: FloatArray,
    levels: FloatArray,
    C: FloatArray,
    beta: FloatArray,
    F: FloatArray,
    members: IntArray,
    unseen: float,
) -> tuple[bool, bool, float]: ...
def balance(
    offsets: FloatArray, levels: FloatArray, beta: FloatArray, members: IntArray
) -> None: ...
def any_near(
    K: FloatArray, y: FloatArray, beta: FloatArray, f: FloatArray, reach: float
) -> bool: ...
