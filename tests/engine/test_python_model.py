"""Python models: front matter, inputs, imports, and places of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command
from tests.runner.conftest import hours
from tests.tiny import HOURS, Tiny
from warehouse.engine import python_model

__all__ = ["hours"]

FILE = "models/metrics/doubled.py"
HEAD = '''\
"""---
about: Twice the speed.
reads: [staging.ports]
grain: [port]
columns:
  port: VARCHAR the port
  speed: BIGINT [1] twice its speed
checks:
  - speed > 0
---"""
'''
BODY = """\
import numpy as np
import pyarrow as pa


def model(ports: pa.Table) -> pa.Table:
    # the last row first: the runner sorts by the grain
    speed = ports["speed"].to_numpy() * 2
    return pa.table({"port": ports["port"].to_pylist()[::-1], "speed": np.flip(speed)})
"""
HALF = {"port": "VARCHAR", "speed": "BIGINT"}


def _doubled(tiny: Tiny, *changes: tuple[str, str]) -> None:
    text = HEAD + BODY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    tiny.write(FILE, text)


def test_its_rows_are_cast_sorted_and_checked(tiny: Tiny, command: Command) -> None:
    _doubled(tiny)
    tiny.model("metrics.half", "SELECT port, speed // 4 AS speed FROM metrics.doubled", HALF)
    assert tiny.made() == {"staging.ports", "metrics.total", "metrics.doubled", "metrics.half"}
    assert tiny.ask("FROM metrics.doubled") == [("eth0", 20), ("eth1", 80)]
    assert tiny.ask("FROM metrics.half ORDER BY ALL") == [("eth0", 5), ("eth1", 20)]
    meta = tiny.ask("SELECT kind, file, reads FROM meta.models WHERE model = 'metrics.doubled'")
    assert meta == [("table", FILE, ["staging.ports"])]
    assert tiny.ask("SELECT count(*) FROM meta.checks WHERE model = 'metrics.doubled'") == [(2,)]
    assert "metrics.doubled  (models/metrics/doubled.py)\n└ staging.ports" in command("lineage", "doubled").out
    assert command("render", "doubled").out == BODY


def test_it_is_rebuilt_for_other_code_or_packages_but_not_for_a_comment(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signals = tmp_path / "signals" / "comb.py"
    signals.parent.mkdir()
    signals.write_text("TEETH = 5\n", encoding="utf-8")
    monkeypatch.setattr(python_model, "_OWN_CODE", signals.parent)
    reads_signals = ("import numpy as np\n", "import numpy as np\nfrom warehouse.signals.period import TEETH as _\n")
    _doubled(tiny, reads_signals)
    tiny.made()
    _doubled(tiny, reads_signals, ("# the last row first", "# backwards"), ("* 2", "*  2"), ("Twice", "Two times"))
    signals.write_text("TEETH =  5  # of a comb\n", encoding="utf-8")
    assert tiny.made() == set()
    signals.write_text("TEETH = 6\n", encoding="utf-8")
    tiny.write("data/notes.md", "")  # the comparison with the last build sees neither this patch nor the next one
    assert tiny.made() == {"metrics.doubled"}, "code of signals"
    monkeypatch.setattr(python_model, "version_of", lambda name: "9.9" if name == "numpy" else "1.0")
    tiny.write("data/notes.md", "again")
    assert tiny.made() == {"metrics.doubled"}, "a version of a package"
    _doubled(tiny, reads_signals, ("* 2", "* 3"))
    assert tiny.made() == {"metrics.doubled"}, "its own code"
    assert tiny.ask("FROM metrics.doubled ORDER BY ALL") == [("eth0", 30), ("eth1", 120)]


def test_a_part_sees_its_own_hour_and_unpartitioned_tables(hours: Tiny) -> None:
    hours.write(
        "models/metrics/spread.py",
        '"""---\nabout: x\npartition: hour_utc\nreads: [staging.hour, staging.ports]\ngrain: [hour_utc]\ncolumns:\n'
        '  hour_utc: TIMESTAMP\n  bytes: BIGINT\n---"""\n'
        "def model(hour, ports):\n"
        '    return hour.set_column(1, "bytes", [[hour.num_rows * 10 + ports.num_rows]])\n',
    )
    assert {f"metrics.spread {hour}" for hour in HOURS} <= hours.made()
    assert hours.ask("SELECT bytes FROM metrics.spread") == [(12,), (12,)]
    hours.file(1, "1,100,2,300,0,0.5", "1,100,2,300,0,0.5")
    assert hours.made() >= {f"metrics.spread {HOURS[1]}"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("columns", "column"), ":5:1: unknown key `column` in the front matter nearest: columns"),
        (('"""---', '"""'), ':1:1: a Python model starts with its front matter: `"""---`'),
        (("reads: [staging.ports]\n", ""), ":1:1: the front matter has no `reads`"),
        (("staging.ports]", "staging.prots]"), ":3:9: no relation staging.prots nearest: staging.ports"),
        (("staging.ports]", "raw.files]"), ":3:9: a Python model cannot read raw.files"),
        (("staging.ports]", "staging.ports, metrics.total]"), ":15: `model(ports)` takes 1 tables, `reads` lists 2"),
        (("def model", "def modell"), ":1: the file has no function `model`"),
        (("import numpy as np", "import nowhere"), ":1: it imports nowhere, of which no version is installed"),
        ((".to_numpy() * 2", ".to_numpy() *"), ":17:40: it does not parse: invalid syntax"),
        (('["speed"].to_numpy() * 2', '["sped"]'), ":17: KeyError: 'Field \"sped\" does not exist in schema'"),
        (("return pa.table(", "return dict("), ":1: `model` gives a dict, not an Arrow table"),
        (("* 2", "* 2.5"), ":1: the contract has speed as BIGINT, the function gives DOUBLE, whose fraction would be"),
        (("np.flip(speed)", 'np.array(["x", "y"])'), ": Could not convert string 'x' to INT64"),
        (("* 2", "* -2"), ":9:5: metrics.doubled: speed > 0: 2 rows fail"),
    ],
)  # fmt: skip
def test_an_error_is_one_sentence_with_its_place(tiny: Tiny, change: tuple[str, str], said: str) -> None:
    _doubled(tiny, change)
    ended = tiny.build()
    assert ended.status == 1
    assert f"error: {FILE}{said}" in ended.err_text
    assert not (tiny.target / "warehouse.duckdb").exists()


def test_a_cycle_and_a_second_model_of_its_name_are_errors(tiny: Tiny) -> None:
    _doubled(tiny)
    tiny.model("staging.ports", "SELECT port, speed FROM metrics.doubled", HALF)
    assert "the models read each other in a circle" in tiny.build().err_text
    tiny.model("metrics.doubled", "SELECT port, speed FROM staging.ports", HALF)
    assert "is metrics.doubled, too" in tiny.build().err_text
