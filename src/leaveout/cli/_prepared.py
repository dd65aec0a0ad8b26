# SPDX-License-Identifier: BSD-3-Clause
"""From options to samples that a kernel can take, and back to a whole model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from leaveout.cli._options import TableOptions
from leaveout.data import (
    Dataset,
    describe_preparation,
    load_example,
    make_preparation,
    read_dataset,
)


def load(table: TableOptions) -> Dataset:
    """Read the data, or take the example."""
    if table.data is not None:
        return read_dataset(
            table.data,
            table.target,
            id_column=table.id_column,
            group_column=table.groups,
            drop=table.drop or (),
            categorical=table.categorical or (),
        )
    named = {
        "--target": table.target,
        "--id": table.id_column,
        "--groups": table.groups,
        "--drop": table.drop,
        "--categorical": table.categorical,
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

    @property
    def names(self) -> np.ndarray:
        """What the samples are called: their ids, else rows as people count."""
        ids = self.dataset.ids
        return np.arange(1, len(self.dataset.y) + 1) if ids is None else ids

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
