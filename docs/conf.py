# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx configuration. Neither the build nor the pages need a network."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import leaveout

project = "leaveout"
author = "The leaveout developers"
copyright = f"2026, {author}"
version = release = leaveout.__version__

extensions = [
    "benchmark_tables",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",  # formulas without a network
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc has the types
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 5,
    "write_computation_times": False,
    "capture_repr": (),
    "reset_modules": ("matplotlib",),
}

html_theme = "furo"
html_title = f"leaveout {version}"
html_show_sourcelink = False
