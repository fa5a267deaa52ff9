from __future__ import annotations

import pytest

from warehouse.reader.readable import header_unit, readable


@pytest.mark.parametrize(
    ("values", "unit", "said"),
    [
        (["6665677503028"], "B", ["6.67 TB"]),
        (["31600887159160", "31498585265946"], "B", ["31.6 TB", "31.5 TB"]),
        (["0", "412", "6665677503028"], "B", ["    0 B", "  412 B", "6.67 TB"]),
        (["999999"], "B", ["1.00 MB"]),
        (["166000000000000", "6040000000000"], "B", ["166.0 TB", "  6.0 TB"]),
        (["0", "-0.000002"], "share", [" 0.00000 %", "-0.00020 %"]),
        (["0.00026", "-0.000002"], "share", ["0.026 %", "0.000 %"]),
        (["31000000000000", "119000000000", "266"], "B", ["31.0 TB", " 119 GB", "  266 B"]),
        (["12340000000.5"], "bit/s", ["12.3 Gb/s"]),
        (["0.0394", None, "0.12"], "share", [" 3.9 %", None, "12.0 %"]),
        (["0.00001"], "share", ["0.0010 %"]),
        (["42.5"], "%", ["42.5 %"]),
        (["45.8"], "s", ["45.8 s"]),
        (["7980"], "s", ["2 h 13 min"]),
        (["-7980"], "s", ["-2 h 13 min"]),
        (["3599.9"], "s", ["1 h"]),
        (["187200"], "s", ["2 d 4 h"]),
        (["965"], "ms", ["965 ms"]),
        (["5.768779759139165", "12.5"], None, [" 5.77", "12.50"]),
        (["0.9299", "1.004", "1.01"], None, ["0.930", "1.004", "1.010"]),
        (["99.98", "6554", "8.008"], None, ["   99.98 ", "6,554    ", "    8.008"]),
        (["8.502", "71.52", "655"], None, ["  8.502", " 71.52 ", "655    "]),
        (["0.52", "0.0005", "0.0059"], "share", ["52.00 %", " 0.05 %", " 0.59 %"]),
        (["44000000000000", "0"], "B", ["44.0 TB", "    0 B"]),
        (["0.00001234"], None, ["1.234e-5"]),
        (["123456789.5"], None, ["123,456,790"]),
        (["5130", "7"], "count", ["5,130", "    7"]),
        (["1.5e9", "nan"], "B", ["1.50 GB", "    nan"]),
    ],
)
def test_readable_numbers(values: list[str | None], unit: str | None, said: list[str | None]) -> None:
    assert readable(values, unit) == said


@pytest.mark.parametrize(
    ("values", "unit", "said"),
    [
        (["0.0394", "0.0393", "0.0389"], "share", ["3.94 %", "3.93 %", "3.89 %"]),
        (["0.0394", "0.0381"], "share", ["3.9 %", "3.8 %"]),
        (["0.0394", "0.0394"], "share", ["3.9 %", "3.9 %"]),
        (["0.039401", "0.039402"], "share", ["3.940 %", "3.940 %"]),
        (["31100000000000", "31094000000000"], "B", ["31.10 TB", "31.09 TB"]),
    ],
)
def test_neighbors_with_different_values_differ_up_to_four_digits(
    values: list[str], unit: str, said: list[str]
) -> None:
    assert readable(values, unit, distinct=True) == said


def test_an_integer_without_a_unit_is_unchanged() -> None:
    assert readable(["20240524", "7"], None, exact=True) == ["20240524", "       7"]


def test_a_header_has_the_unit_that_the_cells_lack() -> None:
    assert [header_unit(unit) for unit in ("1/s", "B", "share", "count", None)] == [" [1/s]", "", "", "", ""]
