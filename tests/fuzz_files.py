# SPDX-License-Identifier: BSD-3-Clause
"""Random, mutated and hostile files for all file readers.

``python tests/fuzz_files.py --seconds 60 --seed 0`` prints one JSON line per kind of
file with the number of files by outcome. Each must be read, or refused by our own error
that names it; whatever is read must be usable. Anything else ends the run with the file
kept beside the message: another exception, a crash, or a minute's work without answer.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from functools import partial
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd
from forks import Fork
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leaveout as lo
from leaveout.data import read_dataset
from leaveout.large._fit import count_classes
from leaveout.large._sources import open_rows
from leaveout.tables._files import is_svmlight, read_bytes, read_table

KINDS = ("csv", "svmlight", "parquet", "rows", "model")
# Files per fork, and its limits of memory and time.
N_FILES, N_BYTES, N_SECONDS = 25, 4 * 2**30, 60
COLUMNS = {"a": [1.5, -2.0, 3e5, 4.0], "b": list("xyxz"), "k": list("uvuv")}
FRAME = pd.DataFrame(COLUMNS).assign(c=[True, False, True, True])
ROWS = FRAME[["a", "k"]].assign(d=[1.0, 2.0, -3.0, 0.0], w=[1.0, 2.0, 0.0, 3.0])
TOKENS = [
    b"\x00", b'"', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b" ", b":",
    b"#", b"1e999", b"-1e999", b"9" * 400, b"nan", b"inf", b"NA", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"PK\x03\x04", b"PAR1", b"=1+1", b"'=1", b"1:1",
    b"2147483648:1", b"9223372036854775808:1", b"-1:1", b"4294967295:2", b"19999999:1",
    b"0x1p3", b"1_000", b"k", b"a", b"\xe2\x80\xa8", b"\x1a", b"\x85", b"1,5", b"True",
    b"2020-01-01", b"\xc2\xa0", b"\x0b", b"\x1c", b"x" * 200_000, b"1" * 100_000 + b"x",
    b"<" + b" " * 100_000 + b"x", b"a,b,c,d,e,f,g,h\n", b"sep=;\n", b"{" * 1000,
]  # fmt: skip
JSON = [None, 0, -1, 10**9, 2**63, 1e308, "", "x", [], {}, True, "os", "system"]


def encode(write, **options):
    """Return the bytes that a function writes to a file."""
    buffer = BytesIO()
    write(buffer, **options)
    return buffer.getvalue()


def table_seeds(kind):
    """Return valid files of a kind."""
    if kind == "parquet":
        write = FRAME.to_parquet
        return [encode(write), encode(write, compression="none", index=True)]
    if kind == "svmlight":
        return [b"+1 1:0.5 3:2\n-1 2:1e3 # c\n1 qid:3 1:1\n-1 1:4\n", b"1 0:1\n2 3:4\n"]
    return [
        FRAME.to_csv(index=False).encode(),
        FRAME.to_csv(index=False, sep=";", decimal=",").encode(),
        FRAME.to_csv(sep="\t").encode("utf-16"),
        b"a b k\n1 2 u\n3 4 v\n5 6 u\n",
    ]


def rows_seeds():
    """Return valid row files, and the required ending of each."""
    write = ROWS.to_parquet
    return [
        (".arrow", encode(ROWS.to_feather, compression="uncompressed")),
        (".npy", encode(partial(np.save, arr=ROWS[["a", "d"]].to_numpy()))),
        (".parquet", encode(write)),
        (".parquet", encode(write, compression="none", row_group_size=1)),
    ]


def model_seeds():
    """Return members of valid model files, and samples to predict."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.repeat([0, 1, 2], 10)
    thin = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    found = []
    for model, features in (
        (lo.SVC(), thin),
        (make_pipeline(StandardScaler(), lo.SVCCV(Cs=[1.0])), X),
        (make_pipeline(OneHotEncoder(), lo.SVC()), np.where(X > 0, "p", "q")),
        (lo.FeatureSVC(n_components=5, random_state=0), X),
        (lo.LPMClassifier(gamma=0.1), X),
        (lo.LLWClassifier(gamma=0.1), X),
    ):
        with tempfile.NamedTemporaryFile(suffix=".skops") as file:
            lo.save_model(model.fit(features, y), file.name)
            found.append((unzip(Path(file.name).read_bytes()), features))
    return found


def mutate_bytes(raw, chance):
    """Change, insert, remove and repeat bytes."""
    raw = bytearray(raw)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        place, length = chance.randrange(len(raw) + 1), chance.randrange(1, 40)
        there = slice(place, place + length)
        match chance.randrange(5):
            case 0 if raw:
                raw[min(place, len(raw) - 1)] ^= 1 << chance.randrange(8)
            case 1:
                raw[place:place] = chance.choice(TOKENS)
            case 2:
                raw[there] = chance.choice([b"", chance.choice(TOKENS)])
            case 3:
                raw[place:place] = raw[there] * chance.choice([1, 50])
            case 4:
                raw[place : place + 4] = chance.randbytes(4)
    return bytes(raw)


def branches(tree):
    """Yield every position of a JSON document as (container, key)."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from branches(tree[key])


def mutate_json(raw, chance):
    """Remove, replace or copy a branch."""
    tree = json.loads(raw)
    places = list(branches(tree))
    container, key = chance.choice(places)
    other, name = chance.choice(places)
    match chance.randrange(3):
        case 0:
            del container[key]
        case 1:
            container[key] = chance.choice(JSON)
        case 2:
            container[key] = json.loads(json.dumps(other[name]))
    return json.dumps(tree).encode()


def mutate_array(raw, chance):
    """Another shape, another number, or other bytes."""
    how = chance.randrange(3)
    if how == 0:
        return mutate_bytes(raw, chance)
    array = np.load(BytesIO(raw))
    if how == 1:
        sizes = [chance.randrange(6) for _ in range(chance.choice([1, 2]))]
        array = np.resize(array, sizes)
    elif array.size and array.dtype.kind in "iuf":
        number = chance.choice([10**6, 2**30, -1, 1 - 2**31, 0])
        array.flat[chance.randrange(array.size)] = number
    return encode(partial(np.save, arr=array))


def unzip(raw):
    with ZipFile(BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def mutate_members(members, chance):
    """Change one member of an archive, with correct checksums."""
    name = chance.choice([*members, *("schema.json",) * ("schema.json" in members)])
    raw = members[name]
    if name.endswith(".json"):
        raw = mutate_json(raw, chance)
    elif name.endswith(".npz"):
        raw = mutate_members(unzip(raw), chance)
    else:
        raw = mutate_array(raw, chance)
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for other, content in members.items():
            archive.writestr(other, raw if other == name else content)
    return buffer.getvalue()


def refused(error, path):
    """Assert that an error names the file, in one line."""
    if path.name not in str(error) or len(str(error).splitlines()) != 1:
        raise AssertionError(f"A bad refusal: {error}")
    return "refused"


def try_table(path, chance):
    """Read a table with one column as classes, and check the result."""
    try:
        target = None
        content = read_bytes(path)
        if not is_svmlight(content):
            target = chance.choice(list(read_table(content, path).frame) or [""])
        dataset = read_dataset(path, target)
    except MemoryError:
        return "too large for the memory"
    except lo.DataFileError as error:
        return refused(error, path)
    assert len(dataset.y) == dataset.X.shape[0] > 0
    assert len(set(dataset.feature_names)) == dataset.X.shape[1]
    assert len(np.unique(dataset.y)) >= 2
    numbers = dataset.X
    if not sparse.issparse(numbers):
        numbers = numbers.drop(columns=list(dataset.text_features)).to_numpy()
    assert np.isfinite(numbers.data).all()
    return "read"


def try_model(path, features):
    """Load a model and predict with it; it must not crash."""
    try:
        model = lo.load_model(path)
        lo.read_model_card(path)
    except lo.ModelFileError as error:
        return refused(error, path)
    try:
        model.predict(features)
        model.decision_function(features)
    except Exception:  # a mutated model may raise any error
        return "read, cannot predict"
    return "read"


def read_rows(rows):
    """Count the rows, the first step of FeatureSVC."""
    counted = None
    for block in rows.blocks():
        assert np.isfinite(block.X).all()
        assert len(block.y) == len(block.X)
        assert block.weight is None or (block.weight >= 0).all()
        found = count_classes(block, seed=0, most=4)
        if counted is None:
            counted = found
        else:
            counted.add(found)
    return "read"


def try_rows(path, ending, chance):
    """Read rows of a file, block by block."""
    file = path.with_suffix(ending)
    file.write_bytes(path.read_bytes())
    y, weight = chance.choice(["k", "k", "k", "a"]), chance.choice([None, "w"])
    if ending == ".npy":
        y, weight = np.arange(4) % 2, None
    try:
        return read_rows(open_rows(file, y, weight, rows_at_once=chance.choice([1, 3])))
    except MemoryError:
        return "too large for the memory"
    except ValueError as error:
        # The number or types of rows are wrong: the error is about X, not the file.
        return "refused" if ending == ".npy" else refused(error, file)


def make_case(kind, seeds, chance):
    """Return the content of a file, and the function to try on its path."""
    seed = chance.choice(seeds)
    if kind == "rows":
        ending, raw = seed
        attempt = partial(try_rows, ending=ending, chance=chance)
        return mutate_bytes(raw, chance), attempt
    if kind == "model":
        members, features = seed
        raw = mutate_members(members, chance)
        if chance.random() < 0.2:
            raw = mutate_bytes(raw, chance)
        return raw, partial(try_model, features=features)
    raw = mutate_bytes(seed, chance)
    if chance.random() < 0.05:
        raw = chance.randbytes(chance.randrange(300))
    return raw, partial(try_table, chance=chance)


def run_batch(kind, seeds, seed, path):
    """Try a batch in a fork; return the outcomes, or raise with the failing file."""

    def work():
        resource.setrlimit(resource.RLIMIT_CPU, (N_SECONDS, N_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (N_BYTES, N_BYTES))
        warnings.simplefilter("ignore")
        chance = random.Random(seed)
        for _ in range(N_FILES):
            try:
                raw, attempt = make_case(kind, seeds, chance)
            except (ValueError, TypeError, KeyError, IndexError, BadZipFile):
                continue  # the mutation itself failed
            path.write_bytes(raw)
            sys.stdout.write(attempt(path) + "\n")

    child = Fork(work, path.parent)
    code = child.wait()
    if code:
        kept = Path(tempfile.gettempdir()) / f"fuzz-{kind}-{seed}"
        kept.write_bytes(path.read_bytes())
        reason = child.read_err()[-500:]
        raise AssertionError(f"exit code {code}; the file is kept as {kept}: {reason}")
    return child.read_out().splitlines()


def run(kind, seconds, seed):
    """Return the number of files of a kind by outcome."""
    make_seeds = {"rows": rows_seeds, "model": model_seeds}
    seeds = make_seeds.get(kind, partial(table_seeds, kind))()
    counts, end = Counter(), time.monotonic() + seconds
    batch = 1_000_000 * seed
    while time.monotonic() < end or not counts:
        with tempfile.TemporaryDirectory() as folder:
            counts.update(run_batch(kind, seeds, batch, Path(folder) / "fuzz.dat"))
        batch += 1
    return dict(counts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for kind in KINDS:
        found = run(kind, arguments.seconds / len(KINDS), arguments.seed)
        sys.stdout.write(json.dumps({"kind": kind, **found}) + "\n")
