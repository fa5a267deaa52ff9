"""`--keep-hours` drops the detail of old hours, keeps what was made of it, and builds nothing of it again."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest

from tests.conftest import call
from tests.tiny import Tiny
from warehouse.base.settings import Settings
from warehouse.history.clean import clean
from warehouse.history.verify import verify
from warehouse.runner.reporter import Reporter
from warehouse.store.manifest import last_manifest

HOUR = {"hour_utc": "TIMESTAMP", "port": "VARCHAR", "bytes": "BIGINT"}
PORTS = {"port": "VARCHAR", "bytes": "BIGINT", "scaled": "BIGINT"}
OLD, MIDDLE, NEW = (f"2024-05-23T{hour}" for hour in (16, 17, 18))
DETAIL = (
    "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, PortName AS port, sum(InOctets) AS bytes"
    " FROM raw.port_counters GROUP BY ALL"
)
SUM = "SELECT port, sum(bytes) AS bytes, sum({}) AS scaled FROM {} GROUP BY port"
COUNTS = "SELECT (SELECT count(*) FROM staging.hour), (SELECT count(*) FROM metrics.hour)"


@pytest.fixture
def month(tiny: Tiny) -> Tiny:
    """Detail by hour; a table and a view made of it; sums over all hours of the table and of the detail."""
    tiny.file(2, "1,100,2,200,0,0.5")
    tiny.model("staging.hour", DETAIL, HOUR, "partition: hour_utc", "detail: true")
    tiny.model(
        "metrics.hour",
        "SELECT hour_utc, port, bytes, bytes * speed AS scaled FROM staging.hour CROSS JOIN topology.speed",
        {**HOUR, "scaled": "BIGINT"},
        "partition: hour_utc",
        "checks:",
        "- total(bytes) = total(staging.hour.bytes)",
        "- bytes > 0",
    )
    tiny.model("topology.speed", "SELECT max(speed) AS speed FROM reference.speeds", {"speed": "BIGINT"})
    tiny.model(
        "metrics.shown",
        "SELECT hour_utc, port, bytes FROM staging.hour",
        HOUR,
        "partition: hour_utc",
        "materialize: view",
        "checks:",
        "- bytes > 0",
    )
    tiny.model(
        "metrics.all",
        SUM.format("scaled", "metrics.hour"),
        PORTS,
        "checks:",
        "- total(bytes) = total(staging.hour.bytes)",
    )
    tiny.model("metrics.recent", SUM.format("bytes", "staging.hour"), PORTS)
    return tiny


def sums(tiny: Tiny) -> tuple[object, ...]:
    return tiny.ask("SELECT (SELECT scaled FROM metrics.all), (SELECT bytes FROM metrics.recent)")[0]


def detail_files(tiny: Tiny) -> set[str]:
    paths = (tiny.target / "parts" / "staging.hour").glob("*/*.parquet")
    return {unquote(path.parent.name).removeprefix("hour_utc=").replace(" ", "T")[:13] for path in paths}


def not_checked(tiny: Tiny) -> list[tuple[object, ...]]:
    found = "SELECT model, partition FROM meta.checks WHERE status = 'not checked: detail dropped' ORDER BY ALL"
    return tiny.ask(found)


@pytest.mark.parametrize("keep", ["1", "2024-05-23T18"])
def test_old_detail_goes_and_what_was_made_of_it_stays(keep: str, month: Tiny) -> None:
    month.build()
    assert sums(month) == (3 * 100 * 40, 3 * 100)
    assert month.made("--keep-hours", keep) == {"metrics.recent"}
    assert month.ask(COUNTS) == [(1, 3)]
    assert month.ask("SELECT count(*) FROM metrics.shown") == [(1,)]
    assert sums(month) == (3 * 100 * 40, 100)
    assert not_checked(month) == [
        ("metrics.all", "all"),
        *((model, hour) for model in ("metrics.hour", "metrics.shown") for hour in (OLD, MIDDLE)),
    ]


def test_nothing_is_dropped_where_all_hours_are_to_be_kept(month: Tiny) -> None:
    month.build()
    build = last_manifest(month.target)
    month.build("--keep-hours", "3")
    after = last_manifest(month.target)
    assert build is not None
    assert after is not None
    assert after.build == build.build
    assert not_checked(month) == []


def test_clean_frees_dropped_detail_and_no_later_build_makes_it_again(month: Tiny) -> None:
    month.build()
    month.build("--keep-hours", "1")
    assert detail_files(month) == {OLD, MIDDLE, NEW}  # the build before still has them
    freed = clean(month.target, 1, dry_run=False)
    folders = {unquote(item.path.parent.name) for item in freed.items if item.kind == "part"}
    assert folders >= {f"hour_utc={hour.replace('T', ' ')}:00:00" for hour in (OLD, MIDDLE)}
    assert detail_files(month) == {NEW}
    month.file(3, "1,100,2,200,0,0.5")
    assert month.made("--keep-hours", "2") == {
        "staging.hour 2024-05-23T19", "metrics.hour 2024-05-23T19", "metrics.all", "metrics.recent",
    }  # fmt: skip
    assert detail_files(month) == {NEW, "2024-05-23T19"}
    assert sums(month) == (4 * 100 * 40, 2 * 100)


def test_the_published_build_names_no_file_that_is_gone(month: Tiny) -> None:
    month.build("--keep-hours", "1")
    clean(month.target, 1, dry_run=False)
    manifest = last_manifest(month.target)
    assert manifest is not None
    assert all((month.target / str(part["path"])).is_file() for part in manifest.parts)
    assert call("verify", "--quick", "-t", month.target, cwd=month.base).status == 0
    assert month.build("--keep-hours", "1").status == 0
    assert "Up to date" in month.build("--keep-hours", "1").err


def test_a_build_of_all_at_once_publishes_the_same(month: Tiny) -> None:
    month.build()
    month.build("--keep-hours", "1")
    before = last_manifest(month.target)
    other = Tiny(month.base / "other")
    other.folder, other.data = month.folder, month.data
    assert other.build("--keep-hours", "1", "--project", month.folder).status == 0
    after = last_manifest(other.target)
    assert before is not None
    assert after is not None
    assert after.build == before.build
    assert not_checked(other) == not_checked(month)


def test_verify_rebuilds_with_the_same_hours(month: Tiny) -> None:
    month.build("--keep-hours", "1")
    clean(month.target, 1, dry_run=False)
    settings = Settings(target=month.target, project=month.folder)
    assert verify(settings, reporter=Reporter()).is_good


def test_what_needs_dropped_detail_makes_it_again(month: Tiny) -> None:
    month.build("--keep-hours", "1")
    clean(month.target, 1, dry_run=False)
    month.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10", "eth1,80")
    made = month.made("--keep-hours", "1")
    assert {f"metrics.hour {hour}" for hour in (OLD, MIDDLE, NEW)} <= made
    assert sums(month) == (3 * 100 * 80, 100)
    assert month.ask(COUNTS) == [(1, 3)]
    clean(month.target, 1, dry_run=False)
    month.file(3, "1,100,2,200,0,0.5")
    again = {"staging.hour 2024-05-23T19", "metrics.hour 2024-05-23T19", "metrics.all", "metrics.recent"}
    assert month.made("--keep-hours", "2") == again


def test_a_check_that_could_not_run_runs_once_its_detail_is_back(month: Tiny) -> None:
    own = "SELECT hour_utc, port, bytes, bytes AS scaled FROM staging.hour"
    month.model("metrics.hour", own, {**HOUR, "scaled": "BIGINT"}, "partition: hour_utc")
    joined = "SELECT hour_utc, port, bytes * speed AS bytes FROM staging.hour CROSS JOIN topology.speed"
    lines = ("partition: hour_utc", "materialize: view", "checks:", "- 'warn: bytes < 5000'")
    month.model("metrics.shown", joined, HOUR, *lines)
    month.build("--keep-hours", "1")
    clean(month.target, 1, dry_run=False)
    month.reference("speeds", {"port": "VARCHAR", "speed": "BIGINT"}, "eth0,10", "eth1,80")
    found = "SELECT partition, status FROM meta.checks WHERE model = 'metrics.shown' ORDER BY ALL"
    unchecked = "not checked: detail dropped"
    for last in (2, 3):  # the second build takes the old hours from their records
        assert month.build("--keep-hours", "1").status == 0
        assert month.ask(found)[:2] == [(OLD, unchecked), (MIDDLE, unchecked)]
        month.file(last + 1, "1,100,2,200,0,0.5")
    assert month.build("--keep-hours", "9").status == 0
    assert {status for _, status in month.ask(found)} == {"warned"}


def test_a_corrected_file_of_an_old_hour_is_followed(month: Tiny) -> None:
    month.build("--keep-hours", "1")
    clean(month.target, 1, dry_run=False)
    month.file(0, "1,500,2,200,0,0.5")
    assert f"metrics.hour {OLD}" in month.made("--keep-hours", "1")
    assert sums(month) == ((500 + 200) * 40, 100)


def test_more_hours_bring_their_detail_back(month: Tiny) -> None:
    month.build("--keep-hours", "1")
    clean(month.target, 1, dry_run=False)
    assert month.made("--keep-hours", "2") >= {f"staging.hour {MIDDLE}", "metrics.recent"}
    assert month.ask(COUNTS) == [(2, 3)]


def plan(tiny: Tiny, *options: str) -> set[tuple[str, str, str | None]]:
    said = call("plan", "-d", tiny.data, "-t", tiny.target, "--json", *options, cwd=tiny.base)
    return {(part["action"], part["model"], part["partition"]) for part in json.loads(said.out)["parts"]}


def test_plan_says_what_is_dropped_and_makes_nothing_dropped_again(month: Tiny) -> None:
    month.build()
    steps = plan(month, "--keep-hours", "1")
    assert {("drop", "staging.hour", OLD), ("drop", "staging.hour", MIDDLE), ("make", "metrics.recent", None)} <= steps
    assert {model for action, model, _ in steps if action == "make"} == {"metrics.recent"}
    month.build("--keep-hours", "1")
    clean(month.target, 1, dry_run=False)
    month.file(3, "1,100,2,200,0,0.5")
    made = {(model, hour) for action, model, hour in plan(month, "--keep-hours", "1") if action == "make"}
    assert all(hour in (None, "2024-05-23T19") for _, hour in made)


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "24h", "2024-05-23 16:00", "2024-02-30", "2024-05-23T24"])
def test_other_values_are_refused_in_one_sentence(wrong: str, month: Tiny) -> None:
    said = month.build(f"--keep-hours={wrong}")
    assert said.status == 2
    assert f"--keep-hours is '{wrong}', not a number of hours or a date" in said.err


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (["partition: hour_utc", "detail: yes"], "`detail` is true or left out"),
        (["detail: true"], "`detail` is for tables with `partition: hour_utc`"),
        (["partition: hour_utc", "materialize: view", "detail: true"], "`detail` is for tables"),
    ],
)
def test_detail_is_a_table_by_hour(lines: list[str], error: str, tiny: Tiny) -> None:
    tiny.model("staging.hour", DETAIL, HOUR, *lines)
    said = tiny.build()
    assert said.status == 1
    assert error in said.err


def test_readers_are_told_which_hours_were_left_out(month: Tiny) -> None:
    month.build()
    old = "2024-05-23 16:00:00"
    said = [
        f"{table} has no rows of hours up to {MIDDLE} (UTC): --keep-hours left out this detail"
        for table in ("staging.hour", "metrics.shown")
    ]

    def asked(*words: str) -> str:
        answer = call(*words, "-t", month.target, cwd=month.base)
        return " ".join((answer.out + answer.err).split())

    def answers() -> list[str]:
        tables = ("staging.hour", "metrics.shown", "metrics.hour")
        none = [asked("sql", f"FROM {table} WHERE hour_utc = '{old}'") for table in tables]
        null = asked("sql", "--format", "table", f"SELECT sum(bytes) FROM metrics.shown WHERE hour_utc = '{old}'")
        return [*none, null, *(asked("show", table) for table in tables)]

    assert "left out" not in "".join(answers())
    month.build("--keep-hours", "1")
    detail, view, hours, null, *shown = answers()
    assert said[0] in detail
    assert said[1] in view
    assert said[1] in null
    assert [said[0] in shown[0], said[1] in shown[1], "left out" in shown[2] + hours] == [True, True, False]
    month.build("--keep-hours", "2024-05-24")
    all_hours = said[0].replace(MIDDLE, NEW)
    assert all_hours in asked("sql", "FROM staging.hour")
    assert asked("show", "staging.hour").count(all_hours) == 1
    month.build()
    assert "left out" not in "".join(answers())
