from enum import IntEnum
from typing import Any

from leaveout.engine._tableau_fast import Tableau

FOLDS_AT_ONCE: int

class Status(IntEnum):
    DONE = 0
    STOPPED = 1
    NOT_NEAR = 2
    TOO_LONG = 3
    FAILED = 4
    STUCK = 5

def run_walks(tableau: Tableau, *args: Any) -> None: ...
