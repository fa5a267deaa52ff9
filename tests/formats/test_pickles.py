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

import warehouse
from warehouse.formats.acme.number_lists import MAX_BYTES, RefusedError, read_arrays
from warehouse.formats.acme.pickles import PUBLISHED
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


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_numbers_of_other_types_are_read(kind: str) -> None:
    numbers = np.array([0, 1, 200], dtype=kind)
    assert read_arrays(pickle.dumps([numbers, numbers], protocol=4)) == [(0, 1, 200), (0, 1, 200)]


def test_the_spelling_of_older_numpy_is_read() -> None:
    name = b"numpy._core.multiarray"
    assert GOOD.count(name) == 1
    old = GOOD.replace(bytes([len(name)]) + name, bytes([len(name) - 1]) + name.replace(b"._core", b".core"))
    assert read_arrays(old) == [tuple(VALUES), tuple(PERCENTS)]


def test_a_curve_becomes_points(tmp_path: Path) -> None:
    file = written(tmp_path / "gpu_power_seren.pkl", GOOD)

    assert (file.status, file.cluster, file.file_group) == ("read", "seren", "util_pkl")
    assert [(row["series"], row["point"], row["value"]) for row in PUBLISHED.read([file], "acme_published", [])] == [
        (1, 1, 0.0), (1, 2, 0.0), (1, 3, 2.5), (1, 4, 400.0),
    ]  # fmt: skip


# refused pickles --------------------------------------------------------------------------------

HEAD, STOP = b"\x80\x04", b"."


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode()


def glob(module: str, name: str) -> bytes:
    """STACK_GLOBAL."""
    return text(module) + text(name) + b"\x93"


def patched(old: bytes, new: bytes) -> bytes:
    assert old in GOOD
    return GOOD.replace(old, new)


RECONSTRUCT = glob("numpy._core.multiarray", "_reconstruct")
BARE_ARRAY = RECONSTRUCT + glob("numpy", "ndarray") + b"K\x00\x85" + b"C\x01b" + b"\x87R"
DTYPE = glob("numpy", "dtype") + text("f8") + b"\x89\x88\x87R"
DTYPE_STATE = b"(K\x03" + text("<") + b"NNN" + b"J\xff\xff\xff\xff" * 2 + b"K\x00tb"
TOUCH = text("touch ran")


def array(shape: bytes = b"K\x01\x85", dtype: bytes = DTYPE + DTYPE_STATE, order: bytes = b"\x89",
          content: bytes = b"C\x08" + bytes(8), version: bytes = b"K\x01") -> bytes:  # fmt: skip
    return BARE_ARRAY + b"(" + version + shape + dtype + order + content + b"tb"


def listed(*items: bytes) -> bytes:
    return HEAD + b"](" + b"".join(items) + b"e" + STOP


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        import tripwire  # type: ignore[import-not-found]

        return tripwire.go, ("ran",)


HOSTILE: dict[str, tuple[bytes, str]] = {
    # calls
    "a call of a function": (HEAD + glob("tripwire", "go") + TOUCH + b"\x85R" + STOP, "global 'tripwire.go' at byte"),
    "os.system": (HEAD + glob("os", "system") + TOUCH + b"\x85R" + STOP, "global 'os.system'"),
    "eval": (HEAD + glob("builtins", "eval") + text("1") + b"\x85R" + STOP, "global 'builtins.eval'"),
    "getattr": (HEAD + glob("builtins", "getattr") + b"." , "global 'builtins.getattr'"),
    "numpy by another door": (HEAD + glob("numpy", "load") + text("x") + b"\x85R" + STOP, "global 'numpy.load'"),
    "a dotted attribute": (HEAD + glob("numpy", "ndarray.tofile") + STOP, "global 'numpy.ndarray.tofile'"),
    "a call of ndarray": (
        HEAD + glob("numpy", "ndarray") + b"J\xff\xff\xff\x7f\x85\x85R" + STOP, "a call of numpy.ndarray with other",
    ),
    "a call of a text": (HEAD + text("x") + b"K\x00\x85R" + STOP, "a call of a str"),
    "a call of a bare array": (HEAD + BARE_ARRAY + b"K\x00\x85R" + STOP, "a call of an array that was never filled"),
    "_reconstruct of another class": (
        HEAD + RECONSTRUCT + glob("numpy", "dtype") + b"K\x00\x85C\x01b\x87R" + STOP, "_reconstruct with other than",
    ),
    "_reconstruct of a large shape": (
        HEAD + RECONSTRUCT + glob("numpy", "ndarray") + b"J\xff\xff\xff\x7f\x85C\x01b\x87R" + STOP, "with other than",
    ),
    "_reconstruct of objects": (
        HEAD + RECONSTRUCT + glob("numpy", "ndarray") + b"K\x00\x85C\x01O\x87R" + STOP, "with other than NumPy's",
    ),
    "globals without names": (HEAD + b"K\x01K\x02\x93" + STOP, "a global without a name"),
    "a global whose name comes from the memo": (
        HEAD + text("tripwire") + b"\x940" + b"h\x00" + text("go") + b"\x93" + STOP, "opcode POP",
    ),
    "the memo, without POP": (
        HEAD + b"](" + text("tripwire") + b"\x94h\x00" + text("go") + b"\x93e" + STOP, "global 'tripwire.go'",
    ),
    # opcodes that lists of arrays do not need
    "GLOBAL": (HEAD + b"ctripwire\ngo\n" + TOUCH + b"\x85R" + STOP, "opcode GLOBAL at byte 2"),
    "INST": (HEAD + b"(" + TOUCH + b"itripwire\ngo\n" + STOP, "opcode INST"),
    "OBJ": (HEAD + b"(" + glob("numpy", "dtype") + TOUCH + b"o" + STOP, "opcode OBJ"),
    "NEWOBJ": (HEAD + glob("numpy", "dtype") + b"K\x00\x85\x81" + STOP, "opcode NEWOBJ"),
    "NEWOBJ_EX": (HEAD + glob("numpy", "dtype") + b"K\x00\x85}\x92" + STOP, "opcode EMPTY_DICT"),
    "NEWOBJ_EX alone": (HEAD + b"\x92" + STOP, "opcode NEWOBJ_EX"),
    "EXT1": (HEAD + b"\x82\x01" + STOP, "opcode EXT1"),
    "EXT2": (HEAD + b"\x83\x01\x00" + STOP, "opcode EXT2"),
    "EXT4": (HEAD + b"\x84\x01\x00\x00\x00" + STOP, "opcode EXT4"),
    "PERSID": (HEAD + b"Pwhere\n" + STOP, "opcode PERSID"),
    "BINPERSID": (HEAD + text("where") + b"Q" + STOP, "opcode BINPERSID"),
    "NEXT_BUFFER": (HEAD + b"\x97" + STOP, "opcode NEXT_BUFFER"),
    "BYTEARRAY8": (HEAD + b"\x96" + b"\xff" * 8 + STOP, "opcode BYTEARRAY8"),
    "BINBYTES8": (HEAD + b"\x8e" + b"\xff" * 7 + b"\x7f" + STOP, "opcode BINBYTES8"),
    "BINUNICODE8": (HEAD + b"\x8d" + b"\xff" * 7 + b"\x7f" + STOP, "opcode BINUNICODE8"),
    "LONG1": (HEAD + b"\x8a\x01\x01" + STOP, "opcode LONG1"),
    "STRING": (HEAD + b"S'x'\n" + STOP, "opcode STRING"),
    "a dictionary": (HEAD + b"}" + STOP, "opcode EMPTY_DICT"),
    "SETITEMS": (HEAD + b"](u" + STOP, "opcode SETITEMS"),
    "a frozenset": (HEAD + b"(\x91" + STOP, "opcode FROZENSET"),
    "DUP": (HEAD + b"]2" + STOP, "opcode DUP"),
    "an opcode that there is not": (HEAD + b"\xfe" + STOP, "opcode fe"),
    "an object's own reduce": (b"", "global 'tripwire.go'"),  # written below, by pickle itself
    "a pickle of text": (b"(lp0\nI1\na.", "opcode LIST"),
    # BUILD
    "BUILD of a function": (HEAD + glob("numpy", "dtype") + b"NNN\x87b" + STOP, "BUILD of numpy.dtype"),
    "BUILD of a list": (HEAD + b"]NNN\x87b" + STOP, "BUILD of a list"),
    "BUILD with a dictionary": (HEAD + BARE_ARRAY + b"}b" + STOP, "opcode EMPTY_DICT"),
    "BUILD of nothing": (HEAD + b"Nb" + STOP, "BUILD without an object"),
    "an array built twice": (listed(array() + b"Nb"), "an array that is built twice"),
    # dtypes
    "an object dtype": (listed(array(dtype=DTYPE.replace(b"f8", b"O8"))), "object dtype 'O8'"),
    "a text dtype": (listed(array(dtype=DTYPE.replace(b"f8", b"U8"))), "dtype 'U8'"),
    "a void dtype": (listed(array(dtype=DTYPE.replace(b"f8", b"V8"))), "dtype 'V8'"),
    "a dtype of a list": (listed(array(dtype=glob("numpy", "dtype") + b"]\x89\x88\x87R")), "a dtype that a list"),
    "a structured dtype": (
        listed(array(dtype=DTYPE + DTYPE_STATE.replace(b"NNN", b"N" + text("a").join([b"(", b"t"]) + b"N"))),
        "a dtype with fields",
    ),
    "the other byte order": (listed(array(dtype=DTYPE + DTYPE_STATE.replace(b"<", b">"))), "another byte order"),
    "a dtype never built": (listed(array(dtype=DTYPE)), "without a dtype of its own"),
    "an aligned dtype": (listed(array(dtype=DTYPE.replace(b"\x89", b"\x88"))), "numpy.dtype with other than"),
    # arrays
    "the Fortran flag": (listed(array(order=b"\x88")), "the Fortran flag"),
    "two dimensions": (listed(array(shape=b"(K\x01K\x01t")), "other than one dimension"),
    "no dimension": (listed(array(shape=b"(t")), "other than one dimension"),
    "more numbers than bytes": (
        listed(array(shape=b"J\xff\xff\xff\x7f\x85")), "an array of 2,147,483,647 numbers of type f8 in 8 bytes",
    ),
    "fewer numbers than bytes": (listed(array(shape=b"K\x00\x85")), "an array of 0 numbers"),
    "less than no numbers": (listed(array(shape=b"J\xff\xff\xff\xff\x85")), "an array of -1 numbers"),
    "a truth as a length": (listed(array(shape=b"\x88\x85")), "other than one dimension"),
    "a content that is a list": (listed(array(content=b"]")), "an array whose content is a list"),
    "another version of the state": (listed(array(version=b"K\x02")), "other than NumPy's state"),
    # other contents
    "an object inside the list": (listed(array(), b"K\x01"), "its list holds a int"),
    "a list inside the list": (listed(array(), b"]"), "its list holds a list"),
    "a list that holds itself": (HEAD + b"]\x94(h\x00e" + STOP, "its list holds a list"),
    "a bare array in the list": (listed(BARE_ARRAY), "an array that was never filled"),
    "no list": (HEAD + b"K\x01" + STOP, "it holds a int, not a list"),
    "nothing": (b"", "ends at byte 0"),
    "nothing left": (HEAD + STOP, "other than one object"),
    "two objects left": (HEAD + b"]]" + STOP, "other than one object"),
    "a mark left": (HEAD + b"](" + STOP, "other than one object"),
    "a mark too few": (HEAD + b"]e" + STOP, "no mark"),
    "too few objects": (HEAD + b"R" + STOP, "too few objects"),
    "objects below a mark": (HEAD + b"N(\x85" + STOP, "too few objects"),
    "an entry of the memo that is not there": (HEAD + b"h\x07" + STOP, "BINGET of 7"),
    "bytes after the end": (GOOD + b"\n", "1 bytes after its end"),
    "a second pickle after the end": (GOOD + GOOD, "bytes after its end"),
    "cut in the middle": (GOOD[:-40], "in the middle"),
    "cut before its end": (GOOD[:-1], "in the middle"),
    "bytes that it does not have": (HEAD + b"B" + struct.pack("<I", 2**32 - 1) + STOP, "in the middle"),
    "a newer protocol": (b"\x80\x09" + GOOD[2:], "pickle protocol 9"),
    "an older protocol": (pickle.dumps([VALUES, PERCENTS], protocol=2), "pickle protocol 2"),
    "a text that is none": (HEAD + b"\x8c\x02\xff\xfe" + STOP, "not UTF-8"),
    "deep tuples": (HEAD + BARE_ARRAY + b"K\x01" + b"\x85" * 100_000 + b"b" + STOP, "NumPy's state"),
    "a deep shape": (listed(array(shape=b"K\x01" + b"\x85" * 100_000)), "other than one dimension"),
    "a deep name": (HEAD + text("numpy") + b"K\x01" + b"\x85" * 100_000 + b"\x93" + STOP, "global without a name"),
    "too large": (b"]" * (MAX_BYTES + 1), f"more than {MAX_BYTES:,}"),
    "pickled gzip": (b"\x1f\x8b\x08\x00", "opcode 1f"),
}  # fmt: skip


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
def test_all_other_content_is_refused_by_name_and_no_code_runs(form: str, tripwire: Path) -> None:
    content, reason = HOSTILE[form]
    if form == "an object's own reduce":
        content = pickle.dumps([Evil()], protocol=4)
        sys.modules.pop("tripwire", None)
        (tripwire / "imported").unlink()
    there = {path.name for path in tripwire.iterdir()}

    with pytest.raises(RefusedError, match="(?i)" + reason.replace("(", r"\(").replace(".", r"\.")):
        read_arrays(content)

    assert {path.name for path in tripwire.iterdir()} == there
    assert "tripwire" not in sys.modules


def test_the_tripwire_works(tripwire: Path) -> None:
    pickle.loads(HOSTILE["a call of a function"][0])
    assert (tripwire / "ran").exists()


CURVES = {
    "three arrays": ([VALUES, PERCENTS, VALUES], "3 arrays, which are no pairs"),
    "no array": ([], "0 arrays"),
    "lengths that differ": ([VALUES, PERCENTS[:3]], "pair 1 has 4 values and 3 percentages"),
    "empty arrays": ([VALUES[:0], VALUES[:0]], "pair 1 has 0 values"),
    "nan": ([VALUES * np.nan, PERCENTS], "pair 1 holds numbers that are not finite"),
    "descending values": ([VALUES[::-1].copy(), PERCENTS], "pair 1 does not ascend"),
    "a pandas object": (None, "pandas object (pandas.core.series.Series)"),
}


@pytest.mark.parametrize("form", CURVES)
def test_a_pickle_that_holds_no_curve_is_skipped_with_the_reason(form: str, tmp_path: Path) -> None:
    arrays, reason = CURVES[form]
    content = HEAD + glob("pandas.core.series", "Series") + STOP if arrays is None else pickle.dumps(arrays, protocol=4)

    file = written(tmp_path / "util.pkl", content)

    assert file.status == "skipped"
    assert file.reason is not None
    assert file.reason.startswith(f"refused: {reason}")


# end to end ---------------------------------------------------------------------------------------


def test_two_files_that_disagree_are_both_in_the_table(tmp_path: Path) -> None:
    folder = tmp_path / "util_pkl"
    folder.mkdir()
    other = np.array([0.0, 1.0, 2.5, 500.0])
    for name, arrays in {"util_gpu_kalos": [VALUES, PERCENTS], "util_gpu_kalos_full": [other, PERCENTS]}.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(arrays, protocol=4))

    warehouse.build(tmp_path, tmp_path / "target")

    with warehouse.open(tmp_path / "target") as reader:
        found = reader.sql(
            "SELECT file, metric, p50, max_value, zero_share, largest_difference, differs_from "
            "FROM metrics.published_distribution ORDER BY file"
        ).fetchall()
    assert found == [
        ("util_gpu_kalos.pkl", "GPU_UTIL", 1.25, 400.0, pytest.approx(1 / 3), 100.0, ["util_gpu_kalos_full.pkl 1"]),
        ("util_gpu_kalos_full.pkl", "GPU_UTIL", 1.75, 500.0, 0.0, 100.0, ["util_gpu_kalos.pkl 1"]),
    ]


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
    with pytest.raises(RefusedError, match=r"pandas object \(pandas.core.series.Series\)"):
        read_arrays(next(path for path in files if path.name == "util_gpu_pai.pkl").read_bytes())
