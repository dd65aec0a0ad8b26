# SPDX-License-Identifier: BSD-3-Clause
"""Data: where samples come from. The first step of the story: imports no other."""

from leaveout.data._dataset import Dataset, load_example
from leaveout.data._make import (
    make_banana,
    make_class_blobs,
    make_mixture,
    make_mixture_centers,
    make_ringnorm,
    make_twonorm,
    make_waveform,
)
from leaveout.data._read import read_csv

__all__ = [
    "Dataset",
    "load_example",
    "make_banana",
    "make_class_blobs",
    "make_mixture",
    "make_mixture_centers",
    "make_ringnorm",
    "make_twonorm",
    "make_waveform",
    "read_csv",
]
