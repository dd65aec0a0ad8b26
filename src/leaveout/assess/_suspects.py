# SPDX-License-Identifier: BSD-3-Clause
"""suspects: samples whose labels the rest of the data contradict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leaveout._messages import count_of
from leaveout._typing import BoolArray, FloatArray, IntArray
from leaveout.adapt._checks import check_count, check_ids
from leaveout.adapt._prepare import prepare, task_on_all_rows
from leaveout.engine._solve import solve_svc
from leaveout.engine._walk import Influence
from leaveout.loo._leave_out import Plan, leave_out, margins_of
from leaveout.loo._summary import Summary, shorten
from leaveout.loo._task import Task, svm_subproblems
from leaveout.run._parallel import limit_blas, show_progress

if TYPE_CHECKING:
    import pandas as pd

# Number of rows that str() shows.
SHOWN = 20
# Decision values held at a time: samples left out x samples x subproblems.
VALUES_AT_A_TIME = 4_000_000


@dataclass(frozen=True, repr=False)
class Suspects(Summary):
    """Samples by ascending leave-one-out margin; the first are the most suspicious.

    Parameters
    ----------
    rows : ndarray of shape (k,)
        Row number in X of each listed sample.
    ids : ndarray of shape (k,)
        Id of each listed sample.
    labels : ndarray of shape (k,)
        Given labels.
    predictions : ndarray of shape (k,)
        Label predicted by the classifier trained without the sample.
    margins : ndarray of shape (k,)
        Leave-one-out margin: y f for two classes; true class minus best other for more.
    lower, upper : ndarray of shape (k,)
        Interval of the margin over all optimal intercepts.
    ambiguous : ndarray of bool, shape (k,)
        Whether another optimal intercept gives another label.
    certified : ndarray of bool, shape (k,)
        Whether the optimality conditions were verified, and rounding cannot have
        changed the label or the first three digits of the influence.
    influence : ndarray of shape (k,)
        Mean change of the margins of all other samples when this one is left out;
        positive if they increase without it.
    n_samples : int
        Number of samples in the data.
    error : float
        Leave-one-out error over all samples.
    n_flagged : int
        Number of samples, listed or not, whose left-out prediction differs from their
        label.
    id_name : str, default="id"
        Heading of the ids in the printed table.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = X[50:], y[50:]  # two classes
    >>> found = lo.suspects(lo.SVC(C=1, gamma=0.1), X, y, top=3)
    >>> found.rows, found.flagged
    (array([33, 56, 27]), array([ True,  True,  True]))
    >>> found.margins.round(2)
    array([-0.39, -0.27, -0.07])
    """

    __module__ = "leaveout"

    rows: IntArray
    ids: np.ndarray
    labels: np.ndarray
    predictions: np.ndarray
    margins: FloatArray
    lower: FloatArray
    upper: FloatArray
    ambiguous: BoolArray
    certified: BoolArray
    influence: FloatArray
    n_samples: int
    error: float
    n_flagged: int
    id_name: str = "id"

    def __len__(self) -> int:
        """Return the number of samples listed."""
        return self.rows.size

    @property
    def flagged(self) -> BoolArray:
        """Mask of the listed samples whose prediction differs from their label."""
        return self.predictions != self.labels

    def to_frame(self) -> pd.DataFrame:
        """Return one row per listed sample, indexed by its id (needs pandas)."""
        import pandas as pd

        columns = {
            "row": self.rows,
            "label": self.labels,
            "prediction": self.predictions,
            "margin": self.margins,
            "lower": self.lower,
            "upper": self.upper,
            "ambiguous": self.ambiguous,
            "certified": self.certified,
            "influence": self.influence,
            "flagged": self.flagged,
        }
        return pd.DataFrame(columns, index=pd.Index(self.ids, name="id"))

    _align = ">"

    def _verdict(self) -> str:
        return (
            f"the rest of the data contradicts {self.n_flagged} of {self.n_samples} "
            f"labels; {count_of(len(self), 'sample')} listed"
        )

    def _rows(self) -> list[tuple[str, ...]]:
        titles = (shorten(self.id_name), "label", "predicted", "margin", "influence")
        cells: list[tuple[str, ...]] = [titles]
        for k in range(min(len(self), SHOWN)):
            mark = "*" * bool(self.ambiguous[k]) + "?" * (not self.certified[k])
            words = (self.ids[k], self.labels[k], self.predictions[k])
            name, label, predicted = (shorten(str(word)) for word in words)
            numbers = f"{self.margins[k]:.4f}", f"{self.influence[k]:+z.4f}"
            cells.append((name, label, f"{predicted}{mark}", *numbers))
        return cells

    def _notes(self) -> list[str]:
        notes = [f"… {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        if self.ambiguous[:SHOWN].any():
            notes.append("* ambiguous: another optimal intercept gives another label")
        if not self.certified[:SHOWN].all():
            notes.append("? not certified: rounding may have changed the label")
        return notes

    def _head(self) -> str:
        return f"Suspects: {self._verdict()}"


def suspects(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    ids: Any = None,
    top: int | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    preprocessing: str = "fold",
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Suspects:
    """Find samples that may be mislabelled, by their exact leave-one-out margin.

    A negative margin means that the rest of the data contradict the label. Every sample
    is left out once, exactly. The same computation gives its influence on the margins
    of the other samples.

    Parameters
    ----------
    estimator : SVC, Pipeline that ends in one, or OneVsRestClassifier of one
        scikit-learn's SVC or leaveout's. It does not need to be fitted and is not
        changed.
    ids : array-like of shape (n_samples,), default=None
        Ids of the samples. By default the index of a DataFrame, otherwise row numbers.
    top : int, default=None
        Number of samples to list; None lists all.
    sample_weight : array-like of shape (n_samples,), default=None
        Rescales C per sample. A sample with weight 0 is listed, but its margin does not
        count in the influence of other samples.
    groups : array-like of shape (n_samples,), default=None
        Samples with equal entries are left out together. Use this for replicates, which
        would otherwise support each other's wrong label. The influence is still that of
        the single sample.
    X, y, preprocessing, n_jobs
        As in :func:`leave_one_out`.
    verbose : int, default=0
        If positive, show progress on stderr.

    Returns
    -------
    Suspects
        Samples sorted by margin, with predictions, certificates and influence.

    Notes
    -----
    The influence of sample r is the mean over all other samples j of m_j without r
    minus m_j with r, where m_j is the margin of j on the training set: y_j f(x_j) for
    two classes, true class minus best other for more. It is positive if the margins of
    the others increase without r. Samples with alpha = 0 have influence 0, unless the
    intercept is not unique. Steps of a Pipeline, ``gamma="scale"`` and balanced class
    weights are those of all rows here: the influence is that of the sample in the fit
    of the classifier.

    Examples
    --------
    >>> import leaveout as lo
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> y[60] = 0  # a wrong label
    >>> found = lo.suspects(lo.SVC(C=1, gamma=0.1), X[:100], y[:100], top=3)
    >>> found.rows
    array([60, 98, 57])
    >>> print(found)
    Suspects: the rest of the data contradicts 1 of 100 labels; 3 samples listed
    id  label  predicted   margin  influence
    60      0          1  -1.1087    +0.0260
    98      1          1   0.5549    +0.0026
    57      1          1   0.6635    -0.0261
    """
    names = check_ids(ids, X)
    task, plan = prepare(
        estimator,
        X,
        y,
        sample_weight=sample_weight,
        groups=groups,
        preprocessing=preprocessing,
        n_jobs=n_jobs,
    )
    n = task.target.labels.size
    k = n if top is None else min(check_count("top", top), n)
    result = leave_out(task, plan).result
    rows = np.argsort(result.margins, kind="stable")[:k]
    if plan.source is not None:
        task = task_on_all_rows(estimator, X, y, sample_weight)
    with limit_blas(1):
        influence, known = measure_influence(task, plan, rows, verbose=verbose > 0)
    copied = ("predictions", "margins", "lower", "upper", "ambiguous")
    return Suspects(
        rows=rows,
        ids=names[rows],
        labels=result.y[rows],
        **{name: getattr(result, name)[rows] for name in copied},
        certified=result.certified[rows] & known,
        influence=influence,
        n_samples=n,
        error=result.error,
        n_flagged=int(np.count_nonzero(result.wrong)),
    )


def measure_influence(
    task: Task, plan: Plan, rows: IntArray, *, verbose: bool = False
) -> tuple[FloatArray, BoolArray]:
    """Return the mean change of all other margins when each row is left out.

    Also return whether it is certified. Rows are processed in batches to bound memory.
    """
    influences = [
        Influence(
            sub.problem,
            solve_svc(sub.problem),
            method=plan.method,
            n_threads=plan.n_threads,
        )
        for sub in svm_subproblems(task, whole=True)
    ]
    n = task.C.shape[0]
    full = np.column_stack([own.solution.decision_values for own in influences])
    before = margins_of(task, full)
    counted, gone = task.target.weights > 0, task.target.vanishing()
    influence, certified = np.empty(rows.size), np.empty(rows.size, dtype=bool)
    size = max(1, VALUES_AT_A_TIME // (n * len(influences)))
    starts = range(0, rows.size, size)
    for start in show_progress(starts, len(starts), "influence", verbose=verbose):
        some = rows[start : start + size]
        found = [own.values_without(some) for own in influences]
        values = np.stack([values for values, _ in found], axis=-1)
        certified[start : start + size] = np.all([known for _, known in found], axis=0)
        if task.params.one_vs_rest and len(influences) > 1:
            values[np.repeat(gone[some, None], n, axis=1)] = -np.inf
        after = np.stack([margins_of(task, v) for v in values])
        others = np.tile(counted, (some.size, 1))
        others[np.arange(some.size), some] = False
        change = np.subtract(after, before, out=np.zeros_like(after), where=others)
        influence[start : start + size] = change.sum(axis=1) / others.sum(axis=1)
    return influence, certified
