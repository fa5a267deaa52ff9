"""Builds of hour tables: what models make of missing columns, other names and damaged lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

import warehouse
from tests.conftest import call
from tests.formats.hour_examples import EXAMPLES
from tests.release import lay_out_project
from warehouse.project.project import Project

MODELS = (
    "metrics.flow_locality_hour", "metrics.flow_pairs", "metrics.nic_hour", "metrics.port_loss_hour",
    "reference.dim_port", "staging.hour_flow", "staging.hour_link", "staging.hour_nic", "staging.rejected_rows",
)  # fmt: skip
Cells = Mapping[str, str]
FLOW, NIC, LINK, PORT = (EXAMPLES[table] for table in ("flow", "nic", "link", "port"))
Ask = Callable[[str], list[tuple[object, ...]]]


def text(*rows: Cells, without: Sequence[str] = ()) -> bytes:
    """Return a file with the columns of the first row, but for some."""
    names = [name for name in rows[0] if name not in without]
    lines = [",".join(names), *(",".join(row[name] for name in names) for row in rows)]
    return "".join(f"{line}\n" for line in lines).encode()


def damaged() -> bytes:
    """Return a table with mixed line ends, text that is not UTF-8, a blank line, a repeated row, and no end."""
    header, good = text(FLOW).splitlines()
    odd = good.replace(b",20  ", b",21  ") + b"\r"
    return b"\n".join([header, good, good.replace(b"NH-", b"\xff-"), b"", odd, good, good])


SECONDS = [f"2024/5/24 上午00:00:0{at}" for at in range(4)]
PORTS = ("FH1/0/48", "400GE1/0/48", "FourHundredGigE 1/0/48", "FourHundredGigabitEthernet1/0/48")
ADAPTERS = ("mlx5_3", "mlx5-3", "MLX5_3", "mlx5_3/1")
SPREAD = {name: f" {value} " for name, value in FLOW.items()}
TABLES = {
    ("damage", "flow"): damaged(),
    ("far", "link"): text(LINK, without=["DstPort"]),
    ("ips", "flow"): text(FLOW, {**FLOW, "SourceServer": "GPU-7"}, without=["SourceIp", "DestIp"]),
    ("names", "flow"): text(
        {**FLOW, "SourceServer": "10.0.0.1", "DestServer": "10.0.0.2"}, without=["SourceIp", "DestIp"]
    ),
    ("ends", "flow"): text(FLOW, without=["DestQp"]),
    ("forms", "flow"): text({**FLOW, "Time": SECONDS[1]}, SPREAD),
    ("forms", "nic"): text(*({**NIC, "SaveTime": SECONDS[at], "PortName": one} for at, one in enumerate(ADAPTERS))),
    ("forms", "port"): text(*({**PORT, "Time": SECONDS[at], "PortName": one} for at, one in enumerate(PORTS))),
    ("forms", "link"): text({**LINK, "IfOperStatus": " UP ", "IfAbbreviatedName": "FH1/0/8"}),
}  # fmt: skip
"""Cluster and table -> content of the file of one hour."""


def laid(folder: Path, cluster: str, table: str, content: bytes) -> None:
    path = folder / cluster / "trafficinfo" / "2024052400" / f"2024052400_{table}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory, own_models: Project) -> Iterator[Ask]:
    """Build all tables at once; return a function that answers a SELECT."""
    folder = tmp_path_factory.mktemp("hours")
    for (cluster, table), content in TABLES.items():
        laid(folder / "data", cluster, table, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: own_models)
        warehouse.build(folder / "data", folder / "target", max_rejected=0.9)
    with warehouse.open(folder / "target") as asked:
        yield lambda select: asked.sql(select).fetchall()


def test_a_build_reads_around_the_damage_of_a_file(ask: Ask) -> None:
    """Good lines keep their numbers."""
    kept = ask("SELECT line, packets FROM staging.hour_flow WHERE cluster = 'damage' ORDER BY line")
    assert kept == [(2, 20), (5, 21)]
    found = ask("SELECT line, reason FROM staging.rejected_rows ORDER BY line")
    assert [line for line, _ in found] == [3, 6, 7]
    assert ["UTF-8" in str(found[0]), "repeats" in str(found[1]), "torn" in str(found[2])] == [True] * 3


ANSWERS = {
    "a link table without far ports": (
        "SELECT switch, port FROM reference.dim_port WHERE cluster = 'far'",
        [("spine-9", "FourHundredGigE1/0/8")],
    ),
    "two servers of one switch with the same queue pair have two flows without addresses": (
        "SELECT flows, packets FROM metrics.flow_locality_hour WHERE cluster = 'ips'",
        [(2, 40)],
    ),
    "no adapter is known without addresses": (
        "SELECT server, hca, queue_pairs, peers FROM metrics.nic_hour WHERE cluster = 'ips' ORDER BY ALL",
        [(server, "unknown", 1, None) for server in ("GPU-226", "GPU-239", "GPU-7")],
    ),
    "addresses in place of names alone are kept": (
        "SELECT src_server, dst_server, packets FROM metrics.flow_pairs WHERE cluster = 'names'",
        [("10.0.0.1", "10.0.0.2", 20)],
    ),
    "queue pairs of one end are not counted for the other": (
        "SELECT server, queue_pairs FROM metrics.nic_hour WHERE cluster = 'ends' ORDER BY ALL",
        [("GPU-226", None), ("GPU-239", 1)],
    ),
    "blanks around names make no second flow": (
        "SELECT flows, packets FROM metrics.flow_locality_hour WHERE cluster = 'forms'",
        [(1, 40)],
    ),
    "blanks around addresses make no second adapter": (
        "SELECT hca, queue_pairs FROM metrics.nic_hour WHERE queue_pairs > 0 AND cluster = 'forms' ORDER BY ALL",
        [("10.107.235.46", 1), ("10.107.235.59", 1)],
    ),
    "an adapter has one name": (
        "SELECT DISTINCT hca FROM staging.hour_nic WHERE cluster = 'forms'",
        [("mlx5_3",)],
    ),
    "a port has one name": (
        "SELECT port, in_loss_packets FROM metrics.port_loss_hour WHERE switch = 'Leaf-12' AND cluster = 'forms'",
        [("FourHundredGigE1/0/48", 4 * 38)],
    ),
    "a port of a link has one name, a status no blanks": (
        "SELECT port, oper_status FROM staging.hour_link WHERE cluster = 'forms'",
        [("FourHundredGigE1/0/8", "up")],
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_tables_of_hour_tables(ask: Ask, case: str) -> None:
    select, rows = ANSWERS[case]
    assert ask(select) == rows


def test_a_skipped_table_is_named_with_the_line_that_accepts_it(tmp_path: Path) -> None:
    """A project with that line reads the file."""
    content = text(FLOW).replace(b"Rtt,", b"Roundtrip_cycles,").replace(b"DestServer,", b"Ziel,")
    laid(tmp_path, "c", "flow", content.replace(b"DestIp,", b"Ziel-IP,"))
    laid(tmp_path, "c", "port", text(PORT))
    study = tmp_path / "study"
    study.mkdir()
    lay_out_project(study, ["staging.hour_flow", "staging.hour_port"])
    (study / "warehouse.toml").write_text('project = "."\nshipped = false\n')
    (study / "data" / "hour_columns.csv").unlink()
    listed = (study / "data" / "tables.yaml").read_text(encoding="utf-8")
    shipped = re.sub(r"^hour_columns:\n(?:[ #\n].*\n?)*", "", listed, flags=re.MULTILINE)
    (study / "data" / "tables.yaml").write_text(shipped, encoding="utf-8")

    def ask(select: str) -> list[tuple[object, ...]]:
        said = call("build", "-d", tmp_path / "c", "-t", tmp_path / "target", cwd=study)
        assert said.status == 0, said.err
        with warehouse.open(tmp_path / "target") as asked:
            return asked.sql(select).fetchall()

    [(reason,)] = ask("SELECT reason FROM raw.files WHERE status = 'skipped'")
    assert str(reason).endswith("add this line to data/hour_columns.csv of your project: flow,DestServer,Ziel,")
    lines = ("relation,published,headers,factor", "flow,DestServer,Ziel,", "flow,Rtt,Roundtrip_cycles,2")
    (study / "data" / "hour_columns.csv").write_text("\n".join(lines))
    said = call("doctor", "-d", tmp_path / "c", cwd=study).out
    assert "Roundtrip_cycles is read as Rtt in Roundtrip_cycles times 2" in " ".join(said.split())
    assert ask("SELECT dest_server, rtt_ns FROM staging.hour_flow") == [("GPU-226", 2 * 5887)]
