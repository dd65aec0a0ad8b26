from typing import Any

from leaveout._typing import FloatArray

def trace_path(*args: Any) -> tuple[bool, int, int, float, FloatArray]: ...
