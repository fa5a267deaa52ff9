"""What runs in Spark's tasks, without Spark."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow
import pytest

from warehouse.engines.base import CsvFiles
from warehouse.engines.spark_tasks import CLOSE, OPEN, TaskError, Writing, read_csv
from warehouse.model import Column

MEMORY = 2**28
COLUMNS = (Column("n", "INTEGER"), Column("s", "VARCHAR"))


def files(folder: Path, *texts: str) -> CsvFiles:
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{number}.csv")
        paths[-1].write_text(f"n,s\n{text}", encoding="utf-8")
    return CsvFiles({"n": "INTEGER", "s": "VARCHAR"}, tuple(paths), quote='"')


def numbers(*which: int) -> list[pyarrow.RecordBatch]:
    return [pyarrow.RecordBatch.from_pydict({"id": list(which)})]


def writing(path: Path, *, few: bool = False) -> Writing:
    return Writing(COLUMNS, ("n",), path, few, MEMORY)


def test_a_task_reads_its_groups_of_files(tmp_path: Path) -> None:
    groups = [files(tmp_path, "1,a\n", '2,"b, c"\n'), files(tmp_path / ".", "3,d\n")]
    rows = [row for batch in read_csv(numbers(1), groups, MEMORY) for row in batch.to_pylist()]
    assert rows == [{"n": 3, "s": "d", "filename": str(tmp_path / "0.csv")}]


def test_a_bad_line_is_told_in_a_form_that_survives_a_stack_trace(tmp_path: Path) -> None:
    with pytest.raises(TaskError) as caught:
        list(read_csv(numbers(0), [files(tmp_path, "1,a\nx,b\n")], MEMORY))
    said = str(caught.value)
    assert said.startswith(f"{OPEN}{tmp_path / '0.csv'}:3: ")
    assert said.endswith(CLOSE)


@pytest.mark.parametrize("few", [True, False])
def test_a_part_is_written_sorted_with_the_types_of_its_contract(tmp_path: Path, few: bool) -> None:
    batches = [pyarrow.RecordBatch.from_pydict({"n": [3, 1], "s": ["c", None]}) for _ in range(1)]
    batches += [pyarrow.RecordBatch.from_pydict({"n": [2], "s": ["b"]})]
    (said,) = writing(tmp_path / "part", few=few).write(iter(batches))
    assert said.to_pydict() == {"rows": [3]}
    rows = duckdb.execute(f"FROM read_parquet('{tmp_path / 'part'}')")
    assert [str(column[1]) for column in rows.description or []] == ["INTEGER", "VARCHAR"]
    assert rows.fetchall() == [(1, None), (2, "b"), (3, "c")]


def test_a_task_that_is_tried_again_writes_anew(tmp_path: Path) -> None:
    """The first try dies in the middle of its rows; nothing of it is seen."""

    def dying() -> object:
        yield pyarrow.RecordBatch.from_pydict({"n": [1], "s": ["a"]})
        raise RuntimeError("the executor is gone")

    part = writing(tmp_path / "part")
    with pytest.raises(Exception, match="the executor is gone"):
        list(part.write(dying()))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    list(part.write([pyarrow.RecordBatch.from_pydict({"n": [1], "s": ["a"]})]))
    assert [path.name for path in tmp_path.iterdir()] == ["part"]


def test_no_batch_is_no_file(tmp_path: Path) -> None:
    assert list(writing(tmp_path / "part").write([])) == []
    assert list(tmp_path.iterdir()) == []
