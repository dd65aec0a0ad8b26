from leaveout._typing import FloatArray, StateArray

AS_BEFORE: int
REFUSED: int
FOUND: int
SOLVED: int
LEFT_OUT: int
FACTS: tuple[str, ...]

class Short:
    beta: FloatArray
    f: FloatArray
    state: StateArray
    lower: FloatArray
    upper: FloatArray
    settled_by: StateArray
    facts: FloatArray
    top: float
    def __init__(
        self,
        K: FloatArray,
        y: FloatArray,
        Cs: FloatArray,
        start: FloatArray | None,
        signs: FloatArray | None,
        regular: bool,
        leave_out: bool,
        labels_only: bool,
    ) -> None: ...
