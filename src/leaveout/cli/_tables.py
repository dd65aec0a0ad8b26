# SPDX-License-Identifier: BSD-3-Clause
"""Tables that commands give: samples with their names, in JSON with every digit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame


def insert_names(frame: DataFrame, heading: str, names: Any) -> None:
    """Put the names of the samples in front, under a heading no other column has."""
    frame.insert(0, f"{heading} (id)" if heading in frame else heading, names)


def to_records(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows for JSON; what JSON has no number for is None.

    ``DataFrame.to_json`` would round to 15 decimals at most.
    """
    plain = frame.astype(object)
    missing = frame.isna() | frame.isin([np.inf, -np.inf])
    return plain.mask(missing, None).to_dict("records")
