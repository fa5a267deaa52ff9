"""Every figure of the report is its query's answer: what the table, the chart and the sentence say is in the rows.

That the rows are those that the query gives again is tested beside it, in test_html_report.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.report.test_report_file import _Figures, _same

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

PREFIXES = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15}
MOST_VALUES = 6
"""Of a column, to be taken together in every way."""
Table = list[list[str]]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _derived(rows: Table) -> set[float]:
    """What may be said of rows: their cells, how many there are, sums, also of those that have something in common."""
    found: set[float] = {len(rows)}
    columns = [list(column) for column in zip(*rows, strict=True)]
    for column in columns:
        numbers = [_number(text) or 0.0 for text in column]
        filled = [text for text in column if text]
        found |= {*numbers, sum(numbers), len(set(filled)), len(filled), sum(map(bool, numbers))}
        found |= {float(v) for text in filled if text[0] == "[" for v in re.findall(r"[\d.]+", text)}
        for by in columns:
            found |= set(_in_groups(column, numbers, by))
    return found


def _in_groups(column: Sequence[str], numbers: Sequence[float], by: Sequence[str]) -> Iterator[float]:
    sums: dict[str, float] = {}
    for number, value in zip(numbers, by, strict=True):
        sums[value] = sums.get(value, 0.0) + number
    for value in sums:
        yield by.count(value)
        yield sums[value]
        yield len({text for text, other in zip(column, by, strict=True) if other == value and text})
    if len(sums) <= MOST_VALUES:
        for size in range(2, len(sums)):
            yield from map(sum, itertools.combinations(sums.values(), size))


def _strange(says: str, rows: Table) -> list[str]:
    """The numbers of a sentence that the rows do not give."""
    texts = {text for row in rows for text in row if len(text) > 3 and _number(text) is None}
    texts |= {text[:10] for text in texts if re.match(r"\d{4}-\d\d-\d\d ", text)}
    for text in sorted(texts, key=len, reverse=True):
        says = says.replace(text, "")
    known = _derived(rows)
    strange = []
    for found in re.finditer(r"(?<![\w.-])(\d[\d,]*(?:\.\d+)?)(?: (kB|MB|GB|TB|PB)\b)?", says):
        value = float(found[1].replace(",", ""))
        if found[2]:  # three digits are said
            fits = any(abs(value * PREFIXES[found[2]] - one) <= 0.005 * one for one in known if one)
        else:
            fits = any(abs(value - one) <= 1e-9 * abs(one) for one in known)
        if not fits:
            strange.append(found[0])
    return strange


@pytest.fixture(scope="module")
def shown(report: Path) -> dict[str, dict[str, Any]]:
    found = _Figures(report.read_text(encoding="utf-8")).found
    return {name: one for name, one in found.items() if one["sql"]}


def test_every_number_in_a_sentence_is_in_the_rows(shown: dict[str, dict[str, Any]]) -> None:
    assert len(shown) > 20
    for name, one in shown.items():
        assert not _strange(one["says"], one["rows"]), f"{name}: {one['says']}"


def test_a_wrong_number_would_be_seen(shown: dict[str, dict[str, Any]]) -> None:
    for name, number in (("observation", r"\d[\d,]+(?= polls)"), ("uplink-balance", r"[\d.]+(?= %)")):
        one = shown[name]
        wrong = re.sub(number, "1234.5", one["says"])
        assert wrong != one["says"]
        assert _strange(wrong, one["rows"]) == ["1234.5"]
    servers = shown["servers"]
    assert _strange(servers["says"], [[*row[:2], *("7" for _ in row[2:])] for row in servers["rows"]])


def test_every_mark_of_a_chart_is_a_row_of_its_table(report: Path, shown: dict[str, dict[str, Any]]) -> None:
    text = report.read_text(encoding="utf-8")
    specs = json.loads(text.split('<script id="specs" type="application/json">')[1].split("</script>")[0])
    columns = {
        name: re.findall(r"<th [^>]*>(.*?)</th>", text.split(f'<figure id="{name}">')[1].split("</thead>")[0])
        for name in shown
    }
    for one in specs:
        name = one["id"]
        if name.startswith("heatmap"):  # a list a row: compared in test_html_report
            continue
        drawn = [row for rows in _datasets(one["spec"]) for row in rows]
        assert drawn, name
        checked = 0
        for mark in drawn:
            common = [column for column in columns[name] if column in mark]
            places = [columns[name].index(column) for column in common]
            checked += bool(common)
            assert not common or any(
                all(_same(row[at], mark[column]) for at, column in zip(places, common, strict=True))
                for row in shown[name]["rows"]
            ), f"{name} draws {mark}"
        assert checked, name


def _datasets(spec: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [rows for rows in spec.get("datasets", {}).values() if isinstance(rows, list)]
