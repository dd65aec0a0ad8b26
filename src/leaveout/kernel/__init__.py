# SPDX-License-Identifier: BSD-3-Clause
"""Kernel: from features to a Gram matrix and a Problem. Imports data only."""

from leaveout.kernel._dask_rows import DaskRows
from leaveout.kernel._definite import is_psd, may_be_indefinite, smallest_eigenvalue
from leaveout.kernel._expansion import evaluate_expansion
from leaveout.kernel._feature_map import FeatureMap
from leaveout.kernel._feature_rows import (
    Encode,
    FeatureBlock,
    FeatureRows,
    Rows,
    RowsInMemory,
    StreamedRows,
    gather_from,
)
from leaveout.kernel._functions import (
    KERNELS,
    check_gram,
    gram_matrix,
    resolve_gamma,
)
from leaveout.kernel._penalty import lambda_from_penalty, penalty_from_lambda
from leaveout.kernel._problem import Problem
from leaveout.kernel._symmetry import first_equal_rows

__all__ = [
    "KERNELS",
    "DaskRows",
    "Encode",
    "FeatureBlock",
    "FeatureMap",
    "FeatureRows",
    "Problem",
    "Rows",
    "RowsInMemory",
    "StreamedRows",
    "check_gram",
    "evaluate_expansion",
    "first_equal_rows",
    "gather_from",
    "gram_matrix",
    "is_psd",
    "lambda_from_penalty",
    "may_be_indefinite",
    "penalty_from_lambda",
    "resolve_gamma",
    "smallest_eigenvalue",
]
