# SPDX-License-Identifier: BSD-3-Clause
"""Random, mutated and hostile files against all our readers.

``python tests/fuzz_files.py --seconds 60 --seed 0`` prints one JSON line per kind of
file with the number of files by outcome. Each must be read, or refused by our own error
that names it; whatever is read must be usable. Anything else ends the run with the file
kept beside the message: another exception, a crash, or a minute's work without answer.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leaveout as lo
from leaveout.data import read_dataset
from leaveout.large._fit import count_classes
from leaveout.large._sources import open_rows
from leaveout.tables._files import is_svmlight, read_bytes, read_table

# A fork works on so many files; what it may use of memory, and of time for all.
N_FILES, N_BYTES, N_SECONDS = 25, 4 * 2**30, 60

FRAME = pd.DataFrame(
    {
        "a": [1.5, -2.0, 3e5, 4.0],
        "b": ["x", "y", "x", "z"],
        "c": [True, False, True, True],
        "k": ["u", "v", "u", "v"],
    }
)
ROWS = FRAME.assign(d=[1.0, 2.0, -3.0, 0.0], w=[1.0, 2.0, 0.0, 3.0])
TOKENS = [
    b"\x00", b'"', b"'", b",", b";", b"\t", b"|", b"\n", b"\r", b"\r\n", b" ", b":",
    b"#", b"1e999", b"-1e999", b"9" * 400, b"nan", b"inf", b"NA", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"PK\x03\x04", b"PAR1", b"=1+1", b"'=1", b"1:1",
    b"2147483648:1", b"9223372036854775808:1", b"-1:1", b"4294967295:2", b"19999999:1",
    b"0x1p3", b"1_000", b"k", b"a", b"\xe2\x80\xa8", b"\x1a", b"\x85", b"1,5", b"True",
    b"2020-01-01", b"\xc2\xa0", b"\x0b", b"\x1c", b"x" * 200_000, b"1" * 100_000 + b"x",
    b"<" + b" " * 100_000 + b"x", b"a,b,c,d,e,f,g,h\n", b"sep=;\n", b"{" * 1000,
]  # fmt: skip


def encode_parquet(**options):
    buffer = BytesIO()
    FRAME.to_parquet(buffer, **options)
    return buffer.getvalue()


def table_seeds():
    """Valid files of each kind."""
    return {
        "csv": [
            FRAME.to_csv(index=False).encode(),
            FRAME.to_csv(index=False, sep=";", decimal=",").encode(),
            FRAME.to_csv(sep="\t").encode("utf-16"),
            FRAME.to_csv(index=False, sep="|", quoting=1).encode(),
            b"a b k\n1 2 u\n3 4 v\n5 6 u\n",
            "größe,k\n1,a\n2,b\n".encode("latin-1"),
        ],
        "svmlight": [
            b"+1 1:0.5 3:2\n-1 2:1e3 # c\n1 qid:3 1:1\n-1 1:4\n",
            b"1 0:1\n2 3:4\n1 2:1\n",
        ],
        "parquet": [encode_parquet(), encode_parquet(compression="none", index=True)],
    }


def rows_seeds():
    """Valid files of rows, and what each has to end with."""
    numbers = ROWS[["a", "d", "k", "w"]]
    arrow, npy = BytesIO(), BytesIO()
    numbers.to_feather(arrow, compression="uncompressed")
    np.save(npy, ROWS[["a", "d"]].to_numpy())
    parquet = [BytesIO(), BytesIO()]
    numbers.to_parquet(parquet[0])
    numbers.to_parquet(parquet[1], compression="none", row_group_size=1)
    return [
        (".arrow", arrow.getvalue()),
        (".npy", npy.getvalue()),
        *((".parquet", buffer.getvalue()) for buffer in parquet),
    ]


def model_seeds(folder):
    """Members of valid model files, and samples to predict."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.repeat([0, 1, 2], 10)
    thin = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    words = np.where(X > 0, "p", "q")
    found = []
    for model, features, labels in (
        (lo.SVC(), X, y),
        (lo.SVC(), thin, y > 0),
        (make_pipeline(StandardScaler(), lo.SVCCV(Cs=[1.0])), X, y),
        (make_pipeline(OneHotEncoder(), lo.SVC()), words, y),
        (lo.FeatureSVC(n_components=5, random_state=0), X, y),
        (lo.LPMClassifier(gamma=0.1), X, y),
        (lo.LLWClassifier(gamma=0.1), X, y),
        (lo.LOOMClassifier(gamma=0.1), X, y > 0),
    ):
        path = folder / "seed.skops"
        lo.save_model(model.fit(features, labels), path)
        with ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        found.append((members, features))
    return found


def mutate_bytes(raw, chance):
    """Change, insert, remove and repeat bytes."""
    raw = bytearray(raw)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        place, length = chance.randrange(len(raw) + 1), chance.randrange(1, 40)
        match chance.randrange(6):
            case 0 if raw:
                raw[min(place, len(raw) - 1)] ^= 1 << chance.randrange(8)
            case 1:
                raw[place:place] = chance.choice(TOKENS)
            case 2:
                del raw[place : place + length]
            case 3:
                raw[place:place] = raw[place : place + length] * chance.choice([1, 50])
            case 4:
                raw[place : place + 4] = chance.randbytes(4)
            case 5:
                raw[place : place + length] = chance.choice(TOKENS)
    return bytes(raw)


def make_table(seeds, chance):
    """A file that was a table once, or never."""
    if chance.random() < 0.05:
        return chance.randbytes(chance.randrange(300))
    return mutate_bytes(chance.choice(seeds), chance)


def walk(tree, path=()):
    """Yield the path of every branch below the root of a JSON document."""
    branches = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, branch in branches:
        yield (*path, key)
        if isinstance(branch, dict | list):
            yield from walk(branch, (*path, key))


def mutate_json(raw, chance):
    """Remove, replace or copy branches."""
    tree = json.loads(raw)
    values = [None, 0, -1, 10**9, 2**63, 1e308, "", "x", [], {}, True, "os", "system"]
    for _ in range(chance.choice([1, 1, 2])):
        paths = list(walk(tree))
        if not paths:
            break
        *above, last = chance.choice(paths)
        branch = follow(tree, above)
        match chance.randrange(3):
            case 0:
                del branch[last]
            case 1:
                branch[last] = chance.choice(values)
            case 2:
                copied = json.dumps(follow(tree, chance.choice(paths)))
                branch[last] = json.loads(copied)
    return json.dumps(tree).encode()


def follow(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def mutate_array(raw, chance):
    """Another shape, another number, or other bytes."""
    match chance.randrange(4):
        case 0:
            array = np.load(BytesIO(raw))
            array = array.ravel()[: chance.randrange(array.size + 1)]
        case 1:
            array = np.load(BytesIO(raw)).copy()
            if array.size and array.dtype.kind in "iuf":
                number = chance.choice([10**6, 2**30, -1, 1 - 2**31, 0])
                array.flat[chance.randrange(array.size)] = number
        case 2:
            shape = [chance.randrange(6) for _ in range(chance.randrange(3))]
            array = np.resize(np.load(BytesIO(raw)), shape)
        case 3:
            return mutate_bytes(raw, chance)
    buffer = BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def mutate_member(raw, name, chance):
    if name.endswith(".json"):
        return mutate_json(raw, chance)
    if name.endswith(".npz"):
        return zip_members(mutate_members(unzip_members(raw), chance))
    return mutate_array(raw, chance)


def mutate_members(members, chance):
    """Change one member; the checksums of the archive are right again."""
    name = chance.choice([*members, *("schema.json",) * ("schema.json" in members)])
    return {**members, name: mutate_member(members[name], name, chance)}


def unzip_members(raw):
    with ZipFile(BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zip_members(members):
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def make_model(members, chance):
    """A file that was a model once."""
    if chance.random() < 0.2:
        return mutate_bytes(zip_members(members), chance)
    return zip_members(mutate_members(members, chance))


def refused(error, path):
    """A refusal names the file, in one line."""
    if path.name not in str(error) or len(str(error).splitlines()) != 1:
        raise AssertionError(f"A bad refusal: {error}")
    return "refused"


def try_table(path, chance):
    """Read a table with a column of it as classes; check what comes out."""
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
    assert len(dataset.feature_names) == dataset.X.shape[1]
    assert len(np.unique(dataset.y)) >= 2
    if sparse.issparse(dataset.X):
        assert np.isfinite(dataset.X.data).all()
    else:
        numbers = dataset.X.drop(columns=list(dataset.text_features))
        assert np.isfinite(numbers.to_numpy()).all()
        assert not dataset.X.columns.duplicated().any()
    return "read"


def try_model(path, features):
    """Load a model and predict with it: no crash, whatever it says."""
    try:
        model = lo.load_model(path)
        lo.read_model_card(path)
    except lo.ModelFileError as error:
        return refused(error, path)
    try:
        model.predict(features)
        model.decision_function(features)
    except Exception:  # an altered model may say anything, but must say it
        return "read, cannot predict"
    return "read"


def is_ours(error):
    """Whether an exception was raised by the package, not by what it calls."""
    place = error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    return "leaveout" in Path(place.tb_frame.f_code.co_filename).parts


def read_rows(rows):
    """Pass over rows, and count them: what FeatureSVC does first."""
    counted = None
    for block in rows.blocks():
        assert np.isfinite(block.X).all()
        assert len(block.y) == len(block.X)
        assert block.weight is None or (block.weight >= 0).all()
        census = count_classes(block, seed=0, most=4)
        if counted is None:
            counted = census
        else:
            counted.add(census)
    if counted is not None:
        counted.labels()
    return "read"


def try_rows(path, ending, chance):
    """Read rows of a file, block by block."""
    file = path.with_suffix(ending)
    file.write_bytes(path.read_bytes())
    y = np.arange(4) % 2 if ending == ".npy" else chance.choice(["k", "k", "k", "a"])
    weight = None if ending == ".npy" else chance.choice([None, "w"])
    try:
        return read_rows(open_rows(file, y, weight, rows_at_once=chance.choice([1, 3])))
    except MemoryError:
        return "too large for the memory"
    except ValueError as error:
        if ending == ".npy" and is_ours(error):  # another number of rows than labels
            return "refused"
        return refused(error, file)


ODD = [
    None, "", "x", 0, 1.5, np.nan, 10**400, 1 + 2j, b"x", [], [[]], {}, set(), object(),
    [[1.0], [2.0, 3.0]], np.datetime64("2020-01-01"), np.zeros((0, 2)),
    np.zeros((2, 0)), np.zeros((2, 2, 2)), np.array(3.0), np.eye(3),
    np.array([[1, "a"], [None, 2]], dtype=object), np.full((2, 2), 1e308),
    np.array([[True, False], [False, True]]), np.full((2, 2), np.inf),
    np.array([["1", "2"], ["3", "4"]]), FRAME, ROWS[["a", "d"]],
    sparse.csr_matrix(np.eye(2)), sparse.csr_matrix((2, 2), dtype=complex),
    np.array([1, -1]), np.array([1.0, -1.0]), ["a", None], ["a", float("nan")],
    [0, "a"], np.ma.masked_invalid([[1.0, np.nan], [0.0, 1.0]]), pd.Series(["u", None]),
]  # fmt: skip


def make_blocks(chance):
    """An iterable of blocks of which some part is odd."""
    good = (np.array([[1.0, 2.0], [3.0, -4.0]]), np.array(["u", "v"]), np.ones(2))
    blocks = [list(good[: chance.choice([2, 2, 3])]) for _ in range(3)]
    for _ in range(chance.choice([1, 1, 2])):
        block = chance.choice(blocks)
        match chance.randrange(4):
            case 0 if block:
                del block[-1]
            case 1:
                block.append(chance.choice(ODD))
            case _ if block:
                block[chance.randrange(len(block))] = chance.choice(ODD)
    if chance.random() < 0.1:
        blocks[chance.randrange(3)] = chance.choice(ODD)
    return [tuple(b) if isinstance(b, list) else b for b in blocks]


def try_blocks(blocks, chance):
    """Read rows of an iterable; a refusal says what is wrong with which block."""
    source = blocks if chance.random() < 0.7 else lambda: iter(blocks)
    try:
        return read_rows(open_rows(source, rows_at_once=chance.choice([1, 3])))
    except (ValueError, TypeError) as error:
        if not is_ours(error):
            raise
        return "refused"


def make_batch(kind, seeds, chance):
    """Yield files and what to do with each."""
    for _ in range(N_FILES):
        if kind == "rows":
            ending, raw = chance.choice(seeds)
            yield (
                mutate_bytes(raw, chance),
                lambda path, ending=ending: try_rows(path, ending, chance),
            )
        elif kind == "blocks":
            blocks = make_blocks(chance)
            yield (
                repr(blocks).encode(),
                lambda path, blocks=blocks: try_blocks(blocks, chance),
            )
        elif kind == "model":
            members, features = chance.choice(seeds)
            try:
                raw = make_model(members, chance)
            except (ValueError, TypeError, KeyError, IndexError, BadZipFile):
                continue  # the mutation itself failed
            yield raw, lambda path, features=features: try_model(path, features)
        else:
            yield make_table(seeds, chance), lambda path: try_table(path, chance)


def run_batch(kind, seeds, seed, path):
    """Try a batch in a fork; return the outcomes, or raise with the failing file."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (N_SECONDS, N_SECONDS))
        signal.alarm(20 * N_SECONDS)  # waits for nothing, either
        resource.setrlimit(resource.RLIMIT_AS, (N_BYTES, N_BYTES))
        warnings.simplefilter("ignore")
        told = ""
        try:
            for raw, attempt in make_batch(kind, seeds, random.Random(seed)):
                path.write_bytes(raw)
                os.write(writing, (attempt(path) + "\n").encode())
        except BaseException as error:
            told = f"!{type(error).__name__}: {error}"[:500]
        finally:
            os.write(writing, told.encode())
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        *outcomes, last = pipe.read().split("\n")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code or last:
        kept = Path(tempfile.gettempdir()) / f"fuzz-{kind}-{seed}"
        kept.write_bytes(path.read_bytes())
        reason = f"signal {-code}" if code else last[1:]
        raise AssertionError(f"{reason}; the file is kept as {kept}")
    return outcomes


KINDS = ("csv", "svmlight", "parquet", "rows", "blocks", "model")


def run(seconds, seed, folder, kinds=KINDS):
    """Return the number of files by kind and outcome."""
    seeds = {**table_seeds(), "rows": rows_seeds(), "blocks": None}
    if "model" in kinds:
        seeds["model"] = model_seeds(folder)
    counts = {kind: Counter() for kind in kinds}
    path, batch = folder / "fuzz.dat", 0
    for kind in kinds:
        end = time.monotonic() + seconds / len(kinds)
        while time.monotonic() < end or not counts[kind]:
            counts[kind].update(
                run_batch(kind, seeds[kind], 1_000_000 * seed + batch, path)
            )
            batch += 1
    return {kind: dict(found) for kind, found in counts.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(arguments.seconds, arguments.seed, Path(folder))
    for kind, outcomes in found.items():
        sys.stdout.write(json.dumps({"kind": kind, **outcomes}) + "\n")


if __name__ == "__main__":
    main()
