# SPDX-License-Identifier: BSD-3-Clause
"""Data: where samples come from. The first step of the story: imports no other."""

from leaveout.data._blocks import Block, Part, RowSource, open_rows
from leaveout.data._census import Census, CensusJob, ClassSample
from leaveout.data._dataset import Dataset, load_example
from leaveout.data._doubts import doubt_independence
from leaveout.data._features import Features, check_not_missing, make_features
from leaveout.data._formulas import format_csv, guard, unguard
from leaveout.data._make import (
    make_banana,
    make_class_blobs,
    make_mixture,
    make_mixture_centers,
    make_ringnorm,
    make_twonorm,
    make_waveform,
)
from leaveout.data._names import (
    check_names_known,
    did_you_mean,
    list_columns,
    list_items,
    list_names,
    printable,
)
from leaveout.data._new_rows import NewRows, match_columns
from leaveout.data._placed_rows import PlacedRows
from leaveout.data._prepare import (
    describe_preparation,
    known_categories,
    make_preparation,
)
from leaveout.data._read import check_columns, read_dataset
from leaveout.data._row_checks import count_rows, is_missing
from leaveout.data._svmlight import is_svmlight, read_svmlight
from leaveout.data._table import Table, read_table, sample_names

__all__ = [
    "Block",
    "Census",
    "CensusJob",
    "ClassSample",
    "Dataset",
    "Features",
    "NewRows",
    "Part",
    "PlacedRows",
    "RowSource",
    "Table",
    "check_columns",
    "check_names_known",
    "check_not_missing",
    "count_rows",
    "describe_preparation",
    "did_you_mean",
    "doubt_independence",
    "format_csv",
    "guard",
    "is_missing",
    "is_svmlight",
    "known_categories",
    "list_columns",
    "list_items",
    "list_names",
    "load_example",
    "make_banana",
    "make_class_blobs",
    "make_features",
    "make_mixture",
    "make_mixture_centers",
    "make_preparation",
    "make_ringnorm",
    "make_twonorm",
    "make_waveform",
    "match_columns",
    "open_rows",
    "printable",
    "read_dataset",
    "read_svmlight",
    "read_table",
    "sample_names",
    "unguard",
]
