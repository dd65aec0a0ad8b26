# SPDX-License-Identifier: BSD-3-Clause
"""One fit of a FeatureSVC: class statistics, features, samples, checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from leaveout._typing import FloatArray, IntArray
from leaveout.adapt._checks import check_classes_repeat, check_number
from leaveout.exceptions import ClusterLostError
from leaveout.large._features import Encode, FeatureMap, FeatureRows
from leaveout.large._rows import GOLDEN, mix_bits
from leaveout.large._solve import LinearProgress, Sizes
from leaveout.large._window import LinearProblems
from leaveout.loo._multiclass import class_pairs
from leaveout.run._checkpoint import (
    Checkpoint,
    check_place,
    find_differences,
    fingerprint,
    refuse_other_run,
)
from leaveout.run._parallel import count_threads

if TYPE_CHECKING:
    from leaveout.large._dask import DistributedRows
    from leaveout.large._feature_svc import FeatureSVC
    from leaveout.large._rows import Block, RowSource

# Largest C times squared length of features. f is a sum of terms of this size; with
# larger terms, rounding errors may hide that a point is not optimal.
MOST_DIGITS = 1e10
# Largest C times the total weight of the rows; larger values overflow in narrow bands.
MOST_LOSS = 1e200
# Names what a checkpoint holds; one of a release with another solver is refused.
SOLVER = "multiples and windows of points (w, b)"
# Parameters that define the problem; a checkpoint must agree in all of them.
DECISIVE = ("features", "n_components", "C", "gamma", "class_weight")


@dataclass
class ClassSample:
    """One class: its number of rows, with weight, and the rows of smallest hash.

    The hash depends only on the row number, not on how rows are cut into blocks.
    """

    n_rows: int
    n_weighted: int
    total_weight: float
    hashes: NDArray[np.uint64]
    X: FloatArray
    weight: FloatArray

    def add(self, other: ClassSample) -> None:
        self.n_rows += other.n_rows
        self.n_weighted += other.n_weighted
        self.total_weight += other.total_weight
        self.hashes = np.concatenate([self.hashes, other.hashes])
        self.X = np.concatenate([self.X, other.X])
        self.weight = np.concatenate([self.weight, other.weight])

    def cut(self, most: int) -> None:
        """Keep at most this many rows, in the order of their hashes."""
        order = np.argsort(self.hashes)[:most]
        self.hashes, self.X = self.hashes[order], self.X[order]
        self.weight = self.weight[order]


@dataclass
class ClassStatistics:
    """Results of the first pass: a sample of each class, and moments of all entries.

    ``most`` rows are kept over all classes; ``spread`` is the sum of the squared
    deviations of the ``n_values`` entries of X from their mean. ``keys`` has a number
    per row, equal only for equal rows of a class, and ``weights`` their weights if any.
    """

    classes: dict[Hashable, ClassSample]
    most: int
    keys: list[NDArray[np.uint64]]
    weights: list[FloatArray | None]
    n_rows: int
    n_values: float
    mean: float
    spread: float
    largest_weight: float

    def add(self, other: ClassStatistics) -> None:
        for label, sample in other.classes.items():
            if label in self.classes:
                self.classes[label].add(sample)
            else:
                self.classes[label] = sample
        for sample in self.classes.values():
            if sample.hashes.size > 1.5 * self.share:  # do not sort after every block
                sample.cut(self.share)
        self.keys += other.keys
        self.weights += other.weights
        self.n_rows += other.n_rows
        # Chan, Golub & LeVeque (1983): variance of two samples combined
        total = self.n_values + other.n_values
        apart = other.mean - self.mean
        # If squares overflow, the spread is infinite, which is refused later.
        shift = apart * (self.n_values * other.n_values / total)
        self.spread += other.spread + apart * shift
        self.mean += apart * other.n_values / total
        self.n_values = total
        self.largest_weight = max(self.largest_weight, other.largest_weight)

    @property
    def share(self) -> int:
        """Rows to keep per class; falls as more classes are found."""
        return max(1, self.most // len(self.classes))

    def merge_rows(self) -> tuple[FloatArray | None, IntArray | None]:
        """Return the weights with that of equal rows at the first of them.

        The second array has the number of the first row that equals each. Both are
        None if all rows are distinct.
        """
        keys = np.concatenate(self.keys)
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        if first.size == keys.size:
            return None, None
        given = [each for each in self.weights if each is not None]
        merged = np.zeros(keys.size)
        merged[first] = np.bincount(group, np.concatenate(given) if given else None)
        return merged, first[group]


def count_classes(block: Block, *, seed: int, most: int) -> ClassStatistics:
    """Count the classes in a block; keep ``most`` rows, chosen by seeded hashes."""
    X, m = block.X, block.X.shape[0]
    weight = np.ones(m) if block.weight is None else block.weight
    hashes = _hashes(block.start + np.arange(m), seed)
    keys = row_keys(X)
    classes: dict[Hashable, ClassSample] = {}
    labels, codes = np.unique(block.y, return_inverse=True)
    if labels.dtype.kind == "f" and (labels != np.rint(labels)).any():
        raise ValueError(
            f"y has numbers such as {labels[labels != np.rint(labels)][0]}. It looks "
            "like a regression target: bin it into classes, or choose another column."
        )
    for code, label in enumerate(labels.tolist()):
        rows = np.flatnonzero(codes == code)
        keys[rows] ^= np.uint64(crc32(repr(label).encode()))
        n_weighted = int(np.count_nonzero(weight[rows]))
        total = float(weight[rows].sum())
        classes[label] = ClassSample(
            rows.size, n_weighted, total, hashes[rows], X[rows], weight[rows]
        )
        classes[label].cut(most)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(X.mean()) if X.size else 0.0
        spread = float(((X - mean) ** 2).sum())
    largest = float(weight.max(initial=0.0))
    return ClassStatistics(
        classes, most, [keys], [block.weight], m, float(X.size), mean, spread, largest
    )


def row_keys(X: FloatArray) -> NDArray[np.uint64]:
    """Return one number per row, equal only for equal rows."""
    # The chance that any two of a million rows collide is one in thirty million.
    h = np.zeros(X.shape[0], dtype=np.uint64)
    for column in np.ascontiguousarray(X.T + 0.0).view(np.uint64):  # -0.0 is 0.0
        h = mix_bits((h ^ column) + GOLDEN)
    return h


def _hashes(rows: IntArray, seed: int) -> NDArray[np.uint64]:
    offset = (seed + 1) * int(GOLDEN) % 2**64
    return mix_bits(rows.astype(np.uint64) * GOLDEN + np.uint64(offset))


class FitCheckpoint:
    """The checkpoint of one fit, if any: an interrupted fit resumes from it."""

    def __init__(self, svc: FeatureSVC) -> None:
        self.path = path = svc.checkpoint
        self.facts: dict[str, Any] = {}
        self.probe = np.empty(0)
        self.stored: Any = None
        if path is not None:
            check_place(path)
            parameters = {name: getattr(svc, name) for name in DECISIVE}
            self.meta = {"parameters": fingerprint(parameters), "solver": SOLVER}
            if Path(path).exists():
                with Checkpoint(path, self.meta) as file:
                    self.stored = file.get(0)

    def choose_seed(self, drawn: int, *, free: bool) -> int:
        """Return the seed of the fit: that of the file unless random_state is set."""
        if free and self.stored is not None:
            drawn = self.stored[1]["seed"]
        self._compare("seed", drawn)
        return drawn

    def resume(
        self, n_rows: int, classes: NDArray[Any], samples: Sequence[ClassSample],
        probe: FloatArray,
    ) -> LinearProgress | None:  # fmt: skip
        """Return the progress in the file; features may differ by rounding."""
        if self.path is None:
            return None
        content = [[s.n_rows, s.hashes, s.X, s.weight] for s in samples]
        self._compare("data", fingerprint([n_rows, classes.tolist(), content]))
        self.probe = probe
        if self.stored is None:
            return None
        arrays = dict(self.stored[0])
        known = arrays.pop("probe")
        if known.shape != probe.shape or not np.allclose(known, probe):
            refuse_other_run(self.path, ["features, which must have a random_state"])
        return LinearProgress(**arrays)

    def put(self, progress: LinearProgress, n_passes: int) -> None:
        if self.path is None:
            return
        facts = {**self.facts, "n_passes": n_passes}
        self.stored = ({**vars(progress), "probe": self.probe}, facts)
        with Checkpoint(self.path, self.meta) as file:
            file.put(0, *self.stored)

    @contextmanager
    def report_loss(self) -> Iterator[None]:
        """Say how to resume after Ctrl-C, or after a cluster was lost."""
        try:
            yield
        except KeyboardInterrupt:
            if self.stored is not None:
                sys.stderr.write(f"Interrupted: {self._how_to_go_on()}\n")
                sys.stderr.flush()
            raise
        except ClusterLostError as error:
            text = f"{error} {self._how_to_go_on()}"
            raise ClusterLostError(text) from error.__cause__

    def _how_to_go_on(self) -> str:
        if self.path is None:
            return "With checkpoint=path a fit can be resumed after such a loss."
        if self.stored is None:
            return f"Nothing has been saved to {self.path} yet; run again."
        return (
            f"{self.stored[1]['n_passes']} passes are saved in {self.path}; run again, "
            "with or without a cluster, to continue."
        )

    def _compare(self, name: str, value: Any) -> None:
        self.facts[name] = value
        if self.path is not None and self.stored is not None:
            found = {name: self.stored[1][name]}
            refuse_other_run(self.path, find_differences(found, {name: value}))


class FitRun:
    """State of a fit after the first pass over the rows."""

    def __init__(
        self, svc: FeatureSVC, source: RowSource | DistributedRows,
        kept: FitCheckpoint, seed: int,
    ) -> None:  # fmt: skip
        self.svc, self.kept, self.seed = svc, kept, seed
        self.n_threads = count_threads(svc.n_jobs)
        self.sizes: Sizes = svc._sizes
        count = partial(count_classes, seed=seed, most=self.sizes.largest_sample)
        self.statistics = statistics = source.sum(count, self.n_threads)
        known = statistics.classes
        heavy = [label for label, part in known.items() if part.total_weight > 0.0]
        self.classes = np.unique(np.array(heavy))
        if len(self.classes) < 2:
            raise ValueError(
                "y needs at least two classes with positive weight; it has one class: "
                f"{self.classes.tolist()}."
            )
        check_classes_repeat({label: part.n_rows for label, part in known.items()})
        self.pairs = class_pairs(len(self.classes))
        self.parts = [known[label] for label in self.classes.tolist()]
        for part in self.parts:
            part.cut(statistics.share)
        self.class_weight = self._class_weights()
        self.largest_weight = statistics.largest_weight * float(self.class_weight.max())
        self.totals = np.array([part.total_weight for part in self.parts])
        self.totals *= self.class_weight
        self.total_weight = float(self.totals.sum())
        self.feature_map = self._make_map()
        merged, first = statistics.merge_rows()
        encode = Encode(self.feature_map, self.classes, self.class_weight, merged)
        n_rows, dim = statistics.n_rows, self.feature_map.dim
        self.rows = FeatureRows(source, encode, n_rows, dim, self.n_threads, 1, first)
        if n_rows <= svc.rows_in_memory:
            self.rows = self.rows.in_memory()
        probe = self.feature_map(self.parts[0].X[:16])
        self.progress = kept.resume(n_rows, self.classes, self.parts, probe)
        sizes = [] if self.progress else self.sizes.samples(n_rows, dim)
        counts = [self._divide(size) for size in sizes]
        informative = [each for each in counts if self._is_informative(each, dim)]
        self.samples = [
            FeatureRows.of(*self._sample(each), n_threads=self.n_threads)
            for each in informative
        ]

    def problems(self, Cs: FloatArray) -> LinearProblems:
        """One SVM per C and pair of classes; with two classes the second is +1."""
        largest = float(Cs.max())
        if not largest <= MOST_LOSS / self.total_weight:
            raise ValueError(
                f"C={largest:.3g} is too large for rows with a total weight of "
                f"{self.total_weight:.3g}: losses overflow if the product exceeds "
                f"{MOST_LOSS:.0e}. Lower C."
            )
        pairs = np.array(self.pairs, dtype=np.int32)
        pairs = pairs[:, ::-1] if len(self.classes) == 2 else pairs
        positive, negative = np.tile(pairs.T, len(Cs))
        C = np.repeat(Cs, len(pairs))
        totals = self.totals[np.column_stack([positive, negative])]
        points = np.zeros((C.size, self.feature_map.dim))
        return LinearProblems(C, positive, negative, totals, points)

    def after_pass(self, progress: LinearProgress) -> None:
        """Save the progress, and report it."""
        n_passes = self.rows.n_passes
        self.kept.put(progress, n_passes)
        if self.svc.verbose:
            solved = np.unique(progress.of)
            left = int((~progress.done[solved]).sum())
            sys.stderr.write(
                f"FeatureSVC: pass {n_passes} over {self.statistics.n_rows} rows; "
                f"{left} of {solved.size} SVMs not solved yet\n"
            )

    def _class_weights(self) -> FloatArray:
        given = self.svc.class_weight
        if given is None:
            return np.ones(len(self.classes))
        if isinstance(given, str):  # "balanced"
            counts = np.array([part.n_rows for part in self.parts], dtype=np.float64)
            return counts.sum() / (len(counts) * counts)
        labels = self.classes.tolist()
        unknown = [label for label in given if label not in labels]
        if unknown:
            raise ValueError(
                f"class_weight has {unknown[0]!r}, which is not a class of y: {labels}."
            )
        return np.array([float(given.get(label, 1.0)) for label in labels])

    def _make_map(self) -> FeatureMap:
        X = np.concatenate([part.X for part in self.parts])
        return FeatureMap.around(self._fit_transformer(X), X[:: max(1, len(X) // 4096)])

    def _fit_transformer(self, X: FloatArray) -> Any:
        """Fit the transformer on the sample."""
        svc = self.svc
        if not isinstance(svc.features, str):
            return clone(svc.features).fit(X)
        if svc.features == "linear":
            return None
        from sklearn.kernel_approximation import Nystroem, RBFSampler  # slow to import

        kind, n_components = RBFSampler, svc.n_components
        if svc.features == "nystroem":
            kind, n_components = Nystroem, min(n_components, len(X))
        transformer = kind(n_components=n_components, random_state=self.seed)
        return transformer.set_params(gamma=self._gamma(X.shape[1])).fit(X)

    def _gamma(self, n_features: int) -> float:
        gamma = self.svc.gamma
        if gamma == "scale":
            variance = self.statistics.spread / self.statistics.n_values
            if not np.isfinite(variance):
                raise ValueError(
                    "gamma='scale' needs the variance of X, which overflows. Scale the "
                    "columns (sklearn.preprocessing.StandardScaler), or set gamma to "
                    "a number."
                )
            return 1.0 / (n_features * variance) if variance > 0.0 else 1.0
        if gamma == "auto":
            return 1.0 / n_features
        return check_number("gamma", gamma, above=0.0)

    def _divide(self, size: int) -> IntArray:
        """Divide a sample equally among the classes, as far as they have rows."""
        kept = np.array([part.hashes.size for part in self.parts])
        counts = np.zeros_like(kept)
        for n_left, code in enumerate(np.argsort(kept, kind="stable")):
            equal = (size - counts.sum()) // (kept.size - n_left)
            counts[code] = min(kept[code], max(1, equal))
        return counts

    def _is_informative(self, counts: IntArray, dim: int) -> bool:
        """Whether a sample has enough rows next to the margin of every pair.

        If C is small, these are the lighter class and as much weight of the other.
        """
        i, j = np.array(self.pairs).T
        per_weight = np.minimum(counts[i] / self.totals[i], counts[j] / self.totals[j])
        near = np.minimum(self.totals[i], self.totals[j]) * per_weight
        return bool(near.min() >= 1.5 * dim)

    def _sample(self, counts: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Take rows of each class, weighted to represent all rows."""
        X, codes, weights = [], [], []
        for code, part in enumerate(self.parts):
            weight = part.weight[: counts[code]]
            if weight.sum() > 0.0:
                weight = weight * (self.totals[code] / weight.sum())
            X.append(self.feature_map(part.X[: counts[code]]))
            codes.append(np.full(weight.size, code))
            weights.append(weight)
        return np.concatenate(X), np.concatenate(codes), np.concatenate(weights)


def check_digits(Cs: FloatArray, largest_weight: float, radius: float) -> None:
    """Raise if C is so large that rounding errors dominate the losses."""
    C = float(Cs.max())
    product = C * largest_weight * radius * radius
    if product > MOST_DIGITS:
        weight = f", weights up to {largest_weight:.3g}" if largest_weight != 1 else ""
        raise ValueError(
            f"C={C:.3g} is too large for features of length up to {radius:.3g} from "
            f"their mean{weight}: C times the squared length is {product:.1e}, and "
            f"above {MOST_DIGITS:.0e} rounding errors dominate. Scale the features, "
            "for example with StandardScaler, or lower C."
        )
