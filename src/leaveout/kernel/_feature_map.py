# SPDX-License-Identifier: BSD-3-Clause
"""Finite features whose inner product is the kernel, and their centre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from leaveout._typing import FloatArray


@dataclass(frozen=True)
class FeatureMap:
    """Rows to features z, moved by a centre.

    The intercept is not regularised, so moving all z by the same vector changes the
    intercept alone; around the centre the bounds on a decision value are smallest.

    Parameters
    ----------
    transformer : object with ``transform``, or None
        None for the rows themselves.
    center : ndarray of shape (n_components,)
        What is taken off.

    Examples
    --------
    >>> import numpy as np
    >>> FeatureMap(None, np.array([1.0, 0.0]))(np.array([[3.0, 2.0]]))
    array([[2., 2.]])
    """

    transformer: Any
    center: FloatArray

    @classmethod
    def around(cls, transformer: Any, sample: FloatArray) -> FeatureMap:
        """Take the mean of a sample of rows as the centre."""
        plain = cls(transformer, np.zeros(1))
        return cls(transformer, plain(sample).mean(axis=0))

    @property
    def n_components(self) -> int:
        """Number of features."""
        return self.center.shape[0]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the features of some rows, (m, n_components)."""
        if self.transformer is None:
            return X - self.center
        if X.shape[0] == 0:  # which scikit-learn's transformers refuse
            return np.empty((0, self.n_components))
        Z = self.transformer.transform(X)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        Z = np.ascontiguousarray(Z, dtype=np.float64)
        if np.may_share_memory(Z, X):
            return Z - self.center
        Z -= self.center
        return Z
