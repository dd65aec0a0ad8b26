# SPDX-License-Identifier: BSD-3-Clause
"""From options to samples that a kernel can take, and back to a whole model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from leaveout.data import (
    Dataset,
    describe_preparation,
    load_example,
    make_preparation,
    read_dataset,
)


def load(
    data: Path | None,
    target: str | None,
    *,
    id_column: str | None = None,
    groups: str | None = None,
    drop: Sequence[str] | None = None,
    categorical: Sequence[str] | None = None,
) -> Dataset:
    """Read the data, or take the example."""
    if data is not None:
        return read_dataset(
            data,
            target,
            id_column=id_column,
            group_column=groups,
            drop=drop or (),
            categorical=categorical or (),
        )
    named = {
        "--target": target,
        "--id": id_column,
        "--groups": groups,
        "--drop": drop,
        "--categorical": categorical,
    }
    for option, value in named.items():
        if value:
            raise ValueError(f"{option} names a column of DATA, but no file is given.")
    return load_example()


@dataclass(frozen=True)
class Prepared:
    """A dataset after its preparation.

    Parameters
    ----------
    dataset : Dataset
        As it was read.
    preparation : transformer or None
        Fitted on all rows.
    X : ndarray, DataFrame or CSR matrix
        What comes out of it.
    sentence : str
        What was done.
    """

    dataset: Dataset
    preparation: Any
    X: Any
    sentence: str

    @property
    def numbers(self) -> Any:
        """X as an array, or sparse."""
        return self.X if sparse.issparse(self.X) else np.asarray(self.X)

    def whole(self, classifier: Any) -> Any:
        """Put the preparation in front of a classifier that was fitted after it."""
        if self.preparation is None:
            return classifier
        return Pipeline([("prepare", self.preparation), ("svc", classifier)])

    def unfitted(self, classifier: Any) -> Pipeline:
        """Return a Pipeline to be fitted on the dataset as it was read."""
        first = "passthrough"
        if self.preparation is not None:
            first = clone(self.preparation)
        return Pipeline([("prepare", first), ("svc", classifier)])


def prepare(dataset: Dataset, *, standardize: bool) -> Prepared:
    """Encode and standardise the features, once on all rows."""
    preparation = make_preparation(dataset, standardize=standardize)
    X = dataset.X if preparation is None else preparation.fit_transform(dataset.X)
    sentence = describe_preparation(dataset, standardize=standardize)
    return Prepared(dataset, preparation, X, sentence)
