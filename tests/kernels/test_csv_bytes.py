"""Numbers are what Python reads of the same characters, and what is none is seen."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from warehouse.kernels import UnsupportedError
from warehouse.kernels import csv_bytes as text_module
from warehouse.kernels.csv_bytes import Text


@pytest.fixture
def text() -> Text:
    return Text()


def _load(text: Text, path: Path, fields: list[str]) -> np.ndarray:
    """The places of fields that are written side by side, a comma after each."""
    path.write_text("".join(f"{field}," for field in fields))
    text.load(path)
    return np.cumsum([0, *(len(field) + 1 for field in fields[:-1])])


def test_whole_numbers_of_all_lengths(text: Text, tmp_path: Path) -> None:
    chance = random.Random(1)
    fields = [str(chance.randrange(10**digits)) for digits in range(1, 16) for _ in range(200)]
    fields += [f"-{field}" for field in fields[::7]] + ["0", "-0", "0012", "9" * 15, "1" + "0" * 14, "12345678"]
    places = _load(text, tmp_path / "numbers", fields)
    numbers, after = text.whole(places)
    assert numbers.tolist() == [int(field) for field in fields]
    assert after.tolist() == [place + len(field) + 1 for place, field in zip(places, fields, strict=True)]
    assert not text.is_odd


def test_decimal_numbers_are_the_nearest_doubles(text: Text, tmp_path: Path) -> None:
    fields = [f"{number / 100:.{decimals}f}" for number in range(0, 10_001, 3) for decimals in range(3)]
    fields += ["-10.6", "-0.01", "-0", ".5", "9999.99", "-9999.99", "1234567"]
    places = _load(text, tmp_path / "numbers", fields)
    ends = places + [len(field) for field in fields]
    for numbers, after in (text.decimal(places), text.decimal(places, ends)):
        assert numbers.tolist() == [float(field) for field in fields]
        assert np.signbit(numbers).tolist() == [field.startswith("-") for field in fields]
        assert after.tolist() == (ends + 1).tolist()
    assert not text.is_odd


@pytest.mark.parametrize(
    "field", ["1e3", "+1", " 1", "1 ", "0x1", "1_0", "nan", "1.0", "--1", "1/2", "1:2", "\x7f1", "\x001"]
)
def test_a_whole_number_with_another_character_is_odd(field: str, text: Text, tmp_path: Path) -> None:
    text.whole(_load(text, tmp_path / "numbers", ["1", field, "2"]))
    assert text.is_odd


@pytest.mark.parametrize("field", ["1.234", "1..2", "1.", ".", "1e3", "+1.5", "-.-5", "inf", "1 .5"])
def test_a_ratio_with_another_character_is_odd(field: str, text: Text, tmp_path: Path) -> None:
    text.decimal(_load(text, tmp_path / "numbers", ["1", field, "2"]))
    assert text.is_odd


def test_oddness_is_of_one_file(text: Text, tmp_path: Path) -> None:
    text.whole(_load(text, tmp_path / "odd", ["x"]))
    text.whole(_load(text, tmp_path / "even", ["1"]))
    assert not text.is_odd


@pytest.mark.parametrize("field", ["", "-", "1" * 16, "-" + "1" * 16, "0" * 30])
def test_no_number_and_too_long_a_one_are_declined(field: str, text: Text, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"blank|16 digits"):
        text.whole(_load(text, tmp_path / "numbers", ["1", field, "2"]))


@pytest.mark.parametrize("field", ["", "-", "1.2.3", "12345.78", "12345678", "123456.78", "1234567890"])
def test_ratios_that_are_declined(field: str, text: Text, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="ratio"):
        text.decimal(_load(text, tmp_path / "numbers", ["1", field, "2"]))


def test_files_follow_each_other_in_the_same_memory(text: Text, tmp_path: Path) -> None:
    for lines in (3, 20_000, 1, 500):
        path = tmp_path / "lines"
        path.write_text("x\n" * lines)
        text.load(path)
        assert text.newlines().tolist() == list(range(1, 2 * lines, 2))


def test_a_large_file_is_declined(text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "MOST", 3)
    (tmp_path / "large").write_text("1,2,")
    with pytest.raises(UnsupportedError, match="more than 3 bytes"):
        text.load(tmp_path / "large")
