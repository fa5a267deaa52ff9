"""Unit tests of models: they pass, they fail cell by cell, and a test that is wrong is a sentence with its line."""

from __future__ import annotations

from tests.conftest import Command
from tests.tiny import Tiny
from warehouse.project.project import Project
from warehouse.quality.model_tests import SUFFIX

FILE = f"models/metrics/total{SUFFIX}"
GOOD = """\
# Speeds add up.
everywhere: {port: eth9}

two ports:
  given:
    staging.ports: |
      port, speed
      eth0, 1
      eth1, 2
  expect: |
    name, speed
    all,  3

what is not given is empty, a sum of nothing NULL:
  expect: |
    name, speed
    all,
"""


def run(tiny: Tiny, command: Command, text: str, *options: str) -> tuple[int, list[str]]:
    tiny.write(FILE, text)
    said = command("test", *options)
    return said.status, [line.strip() for line in (said.err + said.out).splitlines()]


def test_tests_are_counted_and_one_that_fails_shows_each_cell(tiny: Tiny, command: Command) -> None:
    assert run(tiny, command, GOOD) == (0, ["Test   2 tests passed, of 1 model"])
    assert run(tiny, command, GOOD, "--quiet") == (0, [])
    assert run(tiny, command, GOOD, "staging") == (0, ["Test   0 tests passed, of 0 models"])
    assert run(tiny, command, GOOD, "+metrics.total") == (0, ["Test   2 tests passed, of 1 model"])
    assert run(tiny, command, GOOD, "nowhere")[0] == 2
    lines = [
        f"{FILE}:4:1: metrics.total: two ports",
        "name all: speed is 3, expected 4",
        "name some: is missing",
        "Test   1 test passed, 1 failed, of 1 model",
    ]
    assert run(tiny, command, GOOD.replace("all,  3", "all,  4\n    some, 1")) == (1, lines)


TWO = "      eth0, 1\n      eth1, 2\n"
ROWS = f"|\n      port, speed\n{TWO}"


def test_rows_are_a_text_with_ranges_or_a_file_and_a_view_is_made_of_what_it_reads(
    tiny: Tiny, command: Command
) -> None:
    tiny.write("ports.csv", "port, speed\neth0, 1\neth1, 2\n")
    for old, new, total in (
        ("eth1, 2\n", "eth1, 2..4\n", 10),
        (TWO, "      5..7, 10..12\n", 33),
        (TWO, "      5..7, 2^1..3\n", 14),
        (ROWS, "../../ports.csv\n", 3),
    ):
        assert run(tiny, command, GOOD.replace(old, new).replace("all,  3", f"all,  {total}"))[0] == 0, new
    tiny.model("staging.ports", "SELECT port, speed * 10 AS speed FROM reference.speeds",
               {"port": "VARCHAR", "speed": "BIGINT"}, "materialize: view")  # fmt: skip
    assert run(tiny, command, GOOD.replace("staging.ports", "reference.speeds").replace("all,  3", "all,  30"))[0] == 0


# text that is changed: what is said
SHAPE = "a test has `expect` with rows, and `given` with rows for each table; rows are a block of text"
WRONG = {
    ("staging.ports: |", "staging.portz: |"): ":6:5: metrics.total does not read staging.portz nearest: staging.ports",
    ("port, speed\n", "port, sped\n"): ":7: staging.ports has no column sped nearest: speed",
    ("eth0, 1\n", "eth0, 1, 2\n"): ":8: 3 cells below 2 columns",
    ("expect: |\n    name, speed\n    all,  3", "given: x"): ":10:3: `given` stands twice in the file of tests",
    ("eth0, 1\n", "eth0, one\n"): ":4:1: the test `two ports` fails to run: Could not convert",
    ("staging.ports: |", "staging.ports: [1]"): ":7:7: the file of tests is not valid YAML",
    ("{port: eth9}", "eth9"): ":2:1: `everywhere` is a list of `column: value`",
    (GOOD, "everywhere: {port: eth9}"): ":1: the file holds no test",
    ("  given:", "  givn:"): f":4:1: {SHAPE}",
    (GOOD, "a test:\n  given:"): f":1:1: {SHAPE}",
    (GOOD, "a test:\n  expect: [1]\n"): f":2:3: {SHAPE}",
    (TWO, "      5..8, 10..12\n"): ":8: ranges of 4 and 3 numbers in one row",
    (TWO, "      1..100001, 1\n"): ":8: the range 1..100001 is too long: a range has at most 100,000 numbers",
    (TWO, "      2^0..63, 1\n"): ":8: the range 2^0..63 is too long: a range has at most 100,000 numbers",
    (ROWS, "../../no.csv\n"): ":6:5: there is no file ../../no.csv",
}  # fmt: skip


def test_a_test_that_is_wrong_is_a_sentence_with_its_line(tiny: Tiny, command: Command) -> None:
    for (old, new), sentence in WRONG.items():
        status, [line, *_] = run(tiny, command, GOOD.replace(old, new, 1))
        assert (status, line.startswith(f"error: {FILE}{sentence}"[:60])) == (1, True), line


def test_null_empty_text_lists_and_commas_are_told_apart(tiny: Tiny, command: Command) -> None:
    columns = {"name": "VARCHAR", "flags": "VARCHAR[]", "at": "TIMESTAMP", "share": "DOUBLE"}
    tiny.model("staging.given", "SELECT 'x' AS name, ['a'] AS flags, NULL AS at, NULL AS share", columns)
    tiny.model("metrics.total", "SELECT * FROM staging.given WHERE name IS NULL OR name <> 'z'", columns)
    rows = """
      name,      flags,    at,                  share
      "a, it's", "[a, b]", 2024-05-23 16:00:00, 0.1
      '',        [],       ,                    nan
      ,          ,         ,
      z,         ,         ,
"""
    kept = (
        rows.replace("      z,         ,         ,\n", "").replace("      ", "    ").replace("0.1", "0.10000000000001")
    )
    text = f"a test:\n  given:\n    staging.given: |{rows}  expect: |{kept}"
    assert run(tiny, command, text) == (0, ["Test   1 test passed, of 1 model"])
    status, lines = run(tiny, command, text.replace("\n    '', ", "\n    , "))
    assert status == 1
    assert len(lines) > 2
    without_grain = f"a test:\n  given:\n    staging.given: |{rows}  expect: |\n    share\n    0.1\n    nan\n"
    status, [_, *lines, _] = run(tiny, command, without_grain)
    assert (status, lines) == (1, ["row 000002: share is NULL, expected nan", "row 000003: is not expected, nan"])


def test_a_python_model_is_tested_by_its_function(tiny: Tiny, command: Command) -> None:
    head = "about: A model.\nreads: [staging.ports]\ngrain: [port]\ncolumns:\n  port: VARCHAR\n  speed: BIGINT"
    code = "def model(ports):\n    return ports.slice(1)\n"
    tiny.write("models/metrics/tail.py", f'"""---\n{head}\n---"""\n{code}')
    rows = "port, speed\n{indent}eth0, 1\n{indent}eth1, 2\n"
    given = rows.format(indent="      ")
    tiny.write(
        f"models/metrics/tail{SUFFIX}",
        f"without the first:\n  given:\n    staging.ports: |\n      {given}  expect: |\n    port, speed\n    eth1, 2\n",
    )
    assert command("test").status == 0
    tiny.write("models/metrics/tail.py", f'"""---\n{head}\n---"""\n{code.replace("1", "0")}')
    said = command("test")
    assert (said.status, "port eth0: is not expected, eth0, 1" in said.err) == (1, True)


def test_the_shipped_models_have_tests_and_pass_them(command: Command) -> None:
    layers = ("staging", "topology", "metrics")
    models = [one for one in Project.open().models.values() if one.name.startswith(layers)]
    assert [one.name for one in models if not one.path.with_name(one.path.stem + SUFFIX).is_file()] == []
    done = command("test", *layers)
    assert (done.status, done.err) == (0, "")
    assert done.out.endswith(f" passed, of {len(models)} models\n")
