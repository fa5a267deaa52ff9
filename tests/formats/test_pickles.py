"""Published distributions: NumPy's pickles are read; every other pickle is refused, and no code of it runs."""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from warehouse.formats.acme import MAX_BYTES, PUBLISHED, RefusedError, read_arrays
from warehouse.formats.base import RawFile

VALUES, PERCENTS = np.array([0.0, 0.0, 2.5, 400.0]), 100 * np.linspace(0, 1, 4)
GOOD = pickle.dumps([VALUES, PERCENTS], protocol=4)


def written(path: Path, content: bytes) -> RawFile:
    path.write_bytes(content)
    about = path.stat()
    return PUBLISHED.inspect(RawFile(path, path.name, about.st_size, about.st_mtime_ns, format=PUBLISHED.name))


# accepted pickles -------------------------------------------------------------------------------


def test_arrays_of_numpy_are_read_bit_for_bit() -> None:
    assert read_arrays(GOOD) == [tuple(VALUES), tuple(PERCENTS)]
    for kind in ("f4", "f8", "i4", "i8", "u1", "u2", "u4", "u8"):
        numbers = np.array([0, 1, 200], dtype=kind)
        assert read_arrays(pickle.dumps([numbers, numbers], protocol=4)) == [(0, 1, 200), (0, 1, 200)]


def test_the_spelling_of_older_numpy_is_read() -> None:
    name = b"numpy._core.multiarray"
    assert GOOD.count(name) == 1
    old = GOOD.replace(bytes([len(name)]) + name, bytes([len(name) - 1]) + name.replace(b"._core", b".core"))
    old = old[:3] + struct.pack("<Q", len(old) - 11) + old[11:]  # the length of its frame
    assert read_arrays(old) == [tuple(VALUES), tuple(PERCENTS)]


def test_a_curve_becomes_points(tmp_path: Path) -> None:
    four = [VALUES, PERCENTS, VALUES[:1], PERCENTS[:1]]
    file = written(tmp_path / "gpu_power_seren.pkl", pickle.dumps(four, protocol=4))

    assert (file.status, file.cluster, file.file_group) == ("read", "seren", "util_pkl")
    assert [(row["series"], row["point"], row["value"]) for row in PUBLISHED.read([file], "acme_published", [])] == [
        (1, 1, 0.0), (1, 2, 0.0), (1, 3, 2.5), (1, 4, 400.0), (2, 1, 0.0),
    ]  # fmt: skip


# refused pickles --------------------------------------------------------------------------------

HEAD, STOP = b"\x80\x04", b"."


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode()


def glob(module: str, name: str) -> bytes:
    """STACK_GLOBAL."""
    return text(module) + text(name) + b"\x93"


RECONSTRUCT = glob("numpy._core.multiarray", "_reconstruct")
BARE_ARRAY = RECONSTRUCT + glob("numpy", "ndarray") + b"K\x00\x85" + b"C\x01b" + b"\x87R"
DTYPE = glob("numpy", "dtype") + text("f8") + b"\x89\x88\x87R"
DTYPE_STATE = b"(K\x03" + text("<") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb"
TOUCH, HUGE = text("touch ran"), b"J\xff\xff\xff\x7f"


def array(shape: bytes = b"K\x01\x85", dtype: bytes = DTYPE + DTYPE_STATE, order: bytes = b"\x89",
          content: bytes = b"C\x08" + bytes(8), version: bytes = b"K\x01") -> bytes:  # fmt: skip
    return BARE_ARRAY + b"(" + version + shape + dtype + order + content + b"tb"


def listed(*items: bytes) -> bytes:
    return HEAD + b"](" + b"".join(items) + b"e" + STOP


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        import tripwire  # type: ignore[import-not-found]

        return tripwire.go, ("ran",)


HOSTILE: dict[str, bytes] = {
    "a call of a function": HEAD + glob("tripwire", "go") + TOUCH + b"\x85R" + STOP,
    "os.system": HEAD + glob("os", "system") + TOUCH + b"\x85R" + STOP,
    "getattr": HEAD + glob("builtins", "getattr") + b".",
    "numpy by another door": HEAD + glob("numpy", "load") + text("x") + b"\x85R" + STOP,
    "a dotted attribute": HEAD + glob("numpy", "ndarray.tofile") + STOP,
    "the Fortran flag": listed(array(order=b"\x88")),
    "fewer numbers than bytes": listed(array(shape=b"K\x00\x85")),
    "another version of the state": listed(array(version=b"K\x02")),
    "a call of a text": HEAD + text("x") + b"K\x00\x85R" + STOP,
    "_reconstruct of a large shape": HEAD + RECONSTRUCT + glob("numpy", "ndarray") + HUGE + b"\x85C\x01b\x87R" + STOP,
    "a global from the memo": HEAD + text("tripwire") + b"\x940" + b"h\x00" + text("go") + b"\x93" + STOP,
    "GLOBAL": HEAD + b"ctripwire\ngo\n" + TOUCH + b"\x85R" + STOP,
    "INST": HEAD + b"(" + TOUCH + b"itripwire\ngo\n" + STOP,
    "NEWOBJ": HEAD + glob("numpy", "dtype") + b"K\x00\x85\x81" + STOP,
    "BINPERSID": HEAD + text("where") + b"Q" + STOP,
    "BYTEARRAY8": HEAD + b"\x96" + b"\xff" * 8 + STOP,
    "BINBYTES8": HEAD + b"\x8e" + b"\xff" * 7 + b"\x7f" + STOP,
    "an object's own reduce": b"",
    "BUILD of a function": HEAD + glob("numpy", "dtype") + b"NNN\x87b" + STOP,
    "an array built twice": listed(array() + b"Nb"),
    "an object dtype": listed(array(dtype=DTYPE.replace(b"f8", b"O8"))),
    "a structured dtype": listed(array(dtype=DTYPE + DTYPE_STATE.replace(b"NNN", b"N(" + text("a") + b"tN"))),
    "the other byte order": listed(array(dtype=DTYPE + DTYPE_STATE.replace(b"<", b">"))),
    "two dimensions": listed(array(shape=b"(K\x01K\x01t")),
    "more numbers than bytes": listed(array(shape=HUGE + b"\x85")),
    "less than no numbers": listed(array(shape=b"J\xff\xff\xff\xff\x85")),
    "an object inside the list": listed(array(), b"K\x01"),
    "a list that holds itself": HEAD + b"]\x94(h\x00e" + STOP,
    "a bare array in the list": listed(BARE_ARRAY),
    "nothing": b"",
    "too few objects": HEAD + b"R" + STOP,
    "bytes after the end": GOOD + b"\n",
    "cut in the middle": GOOD[:-40],
    "bytes that it does not have": HEAD + b"B" + struct.pack("<I", 2**32 - 1) + STOP,
    "an older protocol": pickle.dumps([VALUES, PERCENTS], protocol=2),
    "deep tuples": HEAD + BARE_ARRAY + b"K\x01" + b"\x85" * 100_000 + b"b" + STOP,
    "too large": b"]" * (MAX_BYTES + 1),
}


@pytest.fixture
def tripwire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write a module that creates a file on import, and another file when its function is called."""
    (tmp_path / "tripwire.py").write_text(
        "from pathlib import Path\nHERE = Path(__file__).parent\n(HERE / 'imported').touch()\n"
        "def go(*_):\n    (HERE / 'ran').touch()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("tripwire", None)


@pytest.mark.parametrize("form", HOSTILE)
def test_all_other_content_is_refused_and_no_code_runs(form: str, tripwire: Path) -> None:
    content = HOSTILE[form]
    if form == "an object's own reduce":
        content = pickle.dumps([Evil()], protocol=4)
        sys.modules.pop("tripwire", None)
        (tripwire / "imported").unlink()
    there = {path.name for path in tripwire.iterdir()}

    with pytest.raises(RefusedError):
        read_arrays(content)

    assert {path.name for path in tripwire.iterdir()} == there
    assert "tripwire" not in sys.modules


def test_one_array_many_times_takes_no_memory() -> None:
    """A file of 800 kB would be 25 GB of numbers."""
    numbers = array(shape=b"M\x00\xf0\x85", content=b"B" + struct.pack("<I", 8 * 0xF000) + bytes(8 * 0xF000))
    with pytest.raises(RefusedError, match="one array many times"):
        read_arrays(HEAD + b"](" + numbers + b"\x94" + b"h\x00" * 100_000 + b"e" + STOP)


CURVES = {
    "three arrays": ([VALUES, PERCENTS, VALUES], "3 arrays, which are no pairs"),
    "no array": ([], "0 arrays"),
    "lengths that differ": ([VALUES, PERCENTS[:3]], "pair 1 has 4 values and 3 percentages"),
    "empty arrays": ([VALUES[:0], VALUES[:0]], "pair 1 has 0 values"),
    "nan": ([VALUES * np.nan, PERCENTS], "pair 1 holds numbers that are not finite"),
    "descending values": ([VALUES[::-1].copy(), PERCENTS], "pair 1 does not ascend"),
    "a pandas object": (None, "global 'pandas.core.series.Series'"),
}


@pytest.mark.parametrize("form", CURVES)
def test_a_pickle_that_holds_no_curve_is_skipped_with_the_reason(form: str, tmp_path: Path) -> None:
    arrays, reason = CURVES[form]
    content = HEAD + glob("pandas.core.series", "Series") + STOP if arrays is None else pickle.dumps(arrays, protocol=4)

    file = written(tmp_path / "util.pkl", content)

    assert file.status == "skipped"
    assert file.reason is not None
    assert file.reason.startswith(f"refused: {reason}")


@pytest.mark.real
def test_published_files_are_read_as_numpy_reads_them(real: Path) -> None:
    """Twelve files are read as NumPy reads them; one is refused. The files are known, so unpickling them is safe."""
    files = sorted((real / "acme").rglob("*.pkl"))
    read = {path.name: read_arrays(path.read_bytes()) for path in files if path.name != "util_gpu_pai.pkl"}

    assert len(read) == 12
    for path in files:
        if path.name in read:
            theirs = pickle.loads(path.read_bytes())
            assert [tuple(array.tolist()) for array in theirs] == read[path.name]
            assert all(earlier <= later for array in read[path.name] for earlier, later in pairwise(array))
    with pytest.raises(RefusedError, match="opcode EMPTY_TUPLE at byte 46"):
        read_arrays(next(path for path in files if path.name == "util_gpu_pai.pkl").read_bytes())
