"""tasks.csv: forms that people have, lines that are refused, and what becomes of them in a warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from warehouse.formats.base import PARTIAL, READ, SKIPPED, RawFile, Rejected
from warehouse.formats.streams import LONE_CR
from warehouse.formats.task_list import TASK_LIST, host_list

ROW = ("a", "gpu31", "2024-05-23 16:10:00.000000", "2024-05-23 16:30:00.000000")
FORMS = {
    "by hand": "task,server,start,end\na,gpu31,2024-05-23T16:10:00Z,2024-05-23 16:30:00\n",
    "another order and case": "End,START,Server,Task\n2024-05-23 16:30,2024-05-23 16:10,gpu31,a\n",
    "sacct": "JobID|NodeList|Start|End\na|gpu31|2024-05-24T00:10:00+0800|2024-05-24T00:30:00+0800\n",
    "kubectl": "TASK  SERVER  START                 END\na     gpu31   2024-05-23T16:10:00Z  2024-05-23T16:30:00Z\n",
    "Excel": "\ufefftask;host;start;end;note\r\na;gpu31;2024-05-23 16:10:00;2024-05-23 16:30:00;x\r\n",
    "tabs, a comment, no last newline": "# mine\nname\tip\tstart\tend\na\tgpu31\t2024-05-23 16:10\t2024-05-23 16:30",
}
BAD = {
    "a,gpu[9-1],2024-05-23,": "'9-1' is no range of servers",
    "a,gpu[1-99999999],2024-05-23,": "more than 10,000 servers",
    "a,gpu1,24/05/2024,": "start '24/05/2024' is no time such as 2024-05-23T16:00:00+08:00",
    "a,gpu1,,2024-05-23": "no start",
    "a,gpu1,2024-05-23 17:00,2024-05-23 16:00": "the end is not after the start",
    "a,,2024-05-23,": "no server",
    ",gpu1,2024-05-23,": "no task",
    "7.batch,gpu1,2024-05-23,": "a step of job 7, whose own line counts",
    "a": "no start",
    "a,gp\ru1,2024-05-23,": LONE_CR,
    'a,"gpu1,2024-05-23,': "a quoted field is not closed on this line",
}


def read(folder: Path, text: str) -> tuple[RawFile, list[tuple[object, ...]], list[Rejected]]:
    path = folder / "tasks.csv"
    path.write_text(text, encoding="utf-8")
    file = RawFile(path, "c/tasks.csv", 1, 1)
    inspected = TASK_LIST.inspect(file)
    rejected: list[Rejected] = []
    if inspected.status == SKIPPED:
        return inspected, [], rejected
    rows = TASK_LIST.read([file], "task_list", rejected)
    return inspected, [(row["task"], row["host"], row["start_utc"], row["end_utc"]) for row in rows], rejected


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_people_have(form: str, tmp_path: Path) -> None:
    inspected, rows, rejected = read(tmp_path, FORMS[form])
    assert (inspected.status, rows, rejected) == (READ, [ROW], [])


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_rejected_with_its_reason_and_the_others_are_read(line: str, tmp_path: Path) -> None:
    inspected, rows, rejected = read(tmp_path, f"task,server,start,end\n{line}\nb,gpu2,2024-05-23,unknown\n")
    assert (inspected.status, inspected.reason) == (PARTIAL, f"line 2: {BAD[line]}")
    assert rows == [("b", "gpu2", "2024-05-23 00:00:00.000000", None)]
    assert [(one.line, one.reason) for one in rejected] == [(2, BAD[line])]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("foo,bar\n1,2\n", "the header has no column task or server or start: it has foo, bar"),
        ("", "empty file: it needs a header with task, server, start and end"),
        ("task,server,start\n", "no row below the header"),
        ("task,server,start\n,,\n", "line 2: no task"),
        ("task,server\rs,start\na,gpu1,2024-05-23\n", f"the header: {LONE_CR}"),
    ],
)
def test_a_file_without_rows_is_skipped_with_a_reason(text: str, reason: str, tmp_path: Path) -> None:
    inspected, _, _ = read(tmp_path, text)
    assert (inspected.status, inspected.reason) == (SKIPPED, reason)


def test_ranks_go_on_from_server_to_server(tmp_path: Path) -> None:
    (tmp_path / "tasks.csv").write_text("task,server,start,first_rank,ranks\na,gpu[1-3],2024-05-23,8,4\n")
    rows = TASK_LIST.read([RawFile(tmp_path / "tasks.csv", "c/tasks.csv", 1, 1)], "task_list", [])
    assert [(row["host"], row["first_rank"], row["ranks"]) for row in rows] == [
        ("gpu1", 8, 4),
        ("gpu2", 12, 4),
        ("gpu3", 16, 4),
    ]


def test_host_lists() -> None:
    assert host_list("n[01-03]-x n7;n7") == ["n01-x", "n02-x", "n03-x", "n7"]
    assert host_list("a[1,3-4],b[2]") == ["a1", "a3", "a4", "b2"]
