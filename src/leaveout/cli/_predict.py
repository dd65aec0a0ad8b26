# SPDX-License-Identifier: BSD-3-Clause
"""``leaveout predict``: classes of new samples by a saved model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from leaveout._messages import count_of, did_you_mean, list_names
from leaveout._model_file import ModelCard, load_model, read_model_card
from leaveout.cli._command import (
    Clock,
    check_files_differ,
    collect_warnings,
    print_status,
)
from leaveout.cli._options import FormatOptions, ShowOptions, check_ending
from leaveout.exceptions import ModelFileError
from leaveout.loo._summary import as_percent
from leaveout.run._files import write_atomically
from leaveout.tables._columns import check_columns
from leaveout.tables._files import (
    format_csv,
    insert_names,
    is_svmlight,
    name_file,
    read_bytes,
    read_svmlight,
    read_table,
    sample_names,
    to_records,
)
from leaveout.tables._preparation import (
    are_text,
    known_categories,
    match_columns,
    spell_as,
)

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def run_predict(
    model: Path,
    data: Path,
    id_column: str | None,
    how: FormatOptions,
    output: Path | None,
    show: ShowOptions,
) -> None:
    """Load a model, read new samples, print or write their classes."""
    check_files_differ({"MODEL": model, "DATA": data}, {"--output": output})
    endings = (".json",) if show.as_json else (".csv", ".txt")
    kind = "JSON" if show.as_json else "CSV"
    check_ending(output, f"--output writes {kind}", *endings)
    if data.suffix == ".skops" and model.suffix != ".skops":
        raise ValueError("The model comes first: leaveout predict MODEL DATA.")
    clock = Clock()
    with clock.measure("loading"):
        card, classifier = read_model_card(model), load_model(model)
    with collect_warnings(), clock.measure("reading"):
        X, truth, ids = _read(data, card, classifier, id_column, how)
    try:
        with collect_warnings(), clock.measure("predicting"):
            table = _predict(classifier, X)
    except (AttributeError, LookupError, TypeError, ArithmeticError) as why:
        raise ModelFileError(
            f"'{model}' is corrupt, its model cannot predict: {type(why).__name__}: "
            f"{why}. Save the model again."
        ) from why
    if truth is not None:
        _compare(truth, table["prediction"], card)
    names = range(1, len(table) + 1) if ids is None else ids
    insert_names(table, "row" if ids is None else ids.name, names)
    if show.as_json:
        text = json.dumps(to_records(table), indent=2) + "\n"
    else:
        text = format_csv(_round(table))
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())
        print_status(f"{count_of(len(table), 'sample')} written to {output}")
    if show.verbose:
        print_status(str(clock))


def _read(
    path: Path,
    card: ModelCard,
    classifier: Any,
    id_column: str | None,
    how: FormatOptions,
) -> tuple[Any, Any, Any]:
    """Return the features, the classes and the ids, each if the file has them.

    The ids are those of ``id_column``, else of the column that select took.
    """
    import pandas as pd

    content = read_bytes(path)
    if is_svmlight(content):
        return _read_svmlight(content, path, card, id_column)
    target, categories = card.details.get("target"), known_categories(classifier)
    known = categories | {str(target): [str(label) for label in card.classes]}
    as_text = {name for name, words in known.items() if are_text(words)}
    kept = id_column or card.details.get("id")
    if kept is not None and kept not in card.feature_names:
        as_text.add(kept)
    frame = read_table(content, path, as_text=as_text, **how.format).frame
    if id_column is not None:
        check_columns([id_column], frame, path)
    ids = None
    if kept is not None and kept in frame:
        ids = pd.Series(sample_names(frame, kept), name=kept)
    spelled = {n: spell_as(frame[n], known[n]) for n in known if n in frame}
    frame = frame.assign(**spelled)
    truth = None if target is None else frame.get(target)
    names = card.feature_names or _unnamed_columns(frame, card, path)
    with name_file(path):
        X, others = match_columns(frame, names, categories)
    unused = [name for name in others if name not in (target, kept)]
    if unused:
        print_status(f"Not used by the model: {list_names(unused)}")
    return (X if hasattr(classifier, "feature_names_in_") else X.to_numpy()), truth, ids


def _read_svmlight(
    content: bytes, path: Path, card: ModelCard, id_column: str | None
) -> tuple[Any, Any, Any]:
    """Return the features, the classes, and no ids."""
    import pandas as pd

    if id_column is not None:
        raise ValueError(
            f"'{path}' is an svmlight file, whose columns have no names: omit --id. "
            "The output has the rows of the file."
        )
    X, classes, _ = read_svmlight(content, path, card.feature_names or None)
    return X, spell_as(pd.Series(classes), [str(c) for c in card.classes]), None


def _unnamed_columns(frame: DataFrame, card: ModelCard, path: Path) -> list[str]:
    """Return all columns, if the model has as many and was trained without names."""
    names = [str(name) for name in frame.columns]
    if card.n_features is not None and len(names) != card.n_features:
        raise ValueError(
            f"The model was trained on {card.n_features} columns without names; "
            f"'{path}' has {len(names)}. Leave just these columns in the file."
        )
    return names


def _predict(classifier: Any, X: Any) -> DataFrame:
    """Return predictions, with a probability or a decision value for each class."""
    import pandas as pd

    table = pd.DataFrame({"prediction": classifier.predict(X)})
    labels = classifier.classes_
    if hasattr(classifier, "predict_proba"):
        word, values = "probability", classifier.predict_proba(X)
    else:
        word, values = "decision", np.asarray(classifier.decision_function(X))
    if values.ndim == 1:
        labels, values = labels[1:], values[:, None]
    for label, column in zip(labels, values.T, strict=True):
        table[f"{word} {label}"] = column
    return table


def _round(table: DataFrame) -> DataFrame:
    """Return the table with six significant digits after the name and the class."""
    numbers = table.iloc[:, 2:]
    return table.assign(**numbers.map(lambda value: float(f"{value:.6g}")))


def _compare(truth: Series, predictions: Series, card: ModelCard) -> None:
    """Print the error on the new samples whose classes are known."""
    labels = [str(label) for label in card.classes]
    comparable = truth.isin(labels).to_numpy()
    wrong = (truth.to_numpy() != predictions.map(str).to_numpy())[comparable]
    expected = ""
    if card.loo_error is not None:
        expected = f"; its leave-one-out error is {as_percent(card.loo_error)}"
    if len(wrong):
        print_status(
            f"The model is wrong on {int(wrong.sum())} of "
            f"{count_of(len(wrong), 'row')} with a class ({as_percent(wrong.mean())})"
            f"{expected}"
        )
    unknown = truth[truth.notna() & ~comparable]
    if len(unknown):
        print_status(
            f"Not compared: {len(unknown)} of {len(truth)} rows with classes that the "
            f"model does not know: {list_names(unknown.unique())}."
            f"{did_you_mean(unknown.iloc[0], labels)}"
        )
    n_empty = int(truth.isna().sum())
    if 0 < n_empty < len(truth):
        print_status(f"Not compared: {n_empty} of {len(truth)} rows without a class.")
