"""Publishing to a real PostgreSQL: exact values, keys, comments, and only changed tables are sent."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Command
from tests.publish.postgres_server import ask, change, drop, few, put
from warehouse.base.errors import QueryError
from warehouse.publish.postgres import server as remote
from warehouse.publish.postgres.publisher import publish

psycopg = pytest.importorskip("psycopg")


KINDS = {
    "h": ("170141183460469231731687303715884105727::HUGEINT", "numeric(39,0)", str(2**127 - 1)),
    "m": ("(-170141183460469231731687303715884105727)::HUGEINT", "numeric(39,0)", str(-(2**127) + 1)),
    "u": ("18446744073709551615::UBIGINT", "numeric(20,0)", str(2**64 - 1)),
    "b": ("9007199254740993::BIGINT", "bigint", "9007199254740993"),
    "d": ("0.1::DOUBLE", "double precision", "0.1"),
    "nan": ("'nan'::DOUBLE", "double precision", "NaN"),
    "inf": ("'-inf'::DOUBLE", "double precision", "-Infinity"),
    "dec": ("1.10::DECIMAL(10,2)", "numeric(10,2)", "1.10"),
    "flag": ("true", "boolean", "true"),
    "ts": ("TIMESTAMP '2024-05-23 16:00:00.123456'", "timestamp without time zone", "2024-05-23 16:00:00.123456"),
    "tz": ("TIMESTAMPTZ '2024-05-24 00:00:00+08'", "timestamp with time zone", "2024-05-23 16:00:00+00"),
    "forever": ("'infinity'::TIMESTAMP", "timestamp without time zone", "infinity"),
    "day": ("DATE '2024-05-23'", "date", "2024-05-23"),
    "uid": ("'0b0d6b5e-8c1f-4a53-9d53-2f6f8c1f4a53'::UUID", "uuid", "0b0d6b5e-8c1f-4a53-9d53-2f6f8c1f4a53"),
    "span": ("INTERVAL '90 minutes'", "interval", "01:30:00"),
    "raw": ("'\\xAA\\x00'::BLOB", "bytea", "\\xaa00"),
    "empty": ("''", "text", ""),
    "nothing": ("NULL::VARCHAR", "text", None),
    "odd": ("'a,\"b\"' || chr(10) || '\\N' || chr(9) || ' 星期五'", "text", 'a,"b"\n\\N\t 星期五'),
    "long": ("repeat('x', 200000)", "text", "x" * 200000),
    "ints": ("[1, NULL, 3]", "integer[]", "{1,NULL,3}"),
    "none": ("[]::INTEGER[]", "integer[]", "{}"),
    "names": ("['a\"b', 'c\\d', NULL, 'NULL', '']", "text[]", '{"a\\"b","c\\\\d",NULL,"NULL",""}'),
    "nested": ("[[1, 2], [3]]", "jsonb", "[[1, 2], [3]]"),
    "ragged": ("[[1], NULL, []]", "jsonb", "[[1], null, []]"),
    "floats": ("['nan'::DOUBLE, 'inf'::DOUBLE, 1.5, NULL]", "double precision[]", "{NaN,Infinity,1.5,NULL}"),
    "deep": ("[['nan'::DOUBLE, 1.5, NULL], NULL]", "jsonb", '[["nan", 1.5, null], null]'),
    "mixed": (
        "{'a': ['-inf'::FLOAT], 'b': map {'k': 'nan'::DOUBLE}, 'h': 170141183460469231731687303715884105727::HUGEINT}",
        "jsonb",
        '{"a": ["-inf"], "b": {"k": "nan"}, "h": 170141183460469231731687303715884105727}',
    ),
    "absent": ("NULL::STRUCT(a DOUBLE)", "jsonb", None),
    "stamps": (
        "[TIMESTAMP '2024-05-23 16:00:00', NULL]",
        "timestamp without time zone[]",
        '{"2024-05-23 16:00:00",NULL}',
    ),
    "bytes": ("['\\x5C\\x78\\x41'::BLOB]", "bytea[]", '{"\\\\x5c7841"}'),
    "uh": ("340282366920938463463374607431768211455::UHUGEINT", "numeric(39,0)", str(2**128 - 1)),
    "ns": ("TIMESTAMP_NS '2024-05-23 16:00:00.123456789'", "text", "2024-05-23 16:00:00.123456789"),
    "ever": ("'infinity'::TIMESTAMPTZ", "timestamp with time zone", "infinity"),
    "choice": ("'a'::ENUM('a', 'b')", "text", "a"),
    "prices": ("[1.5::DECIMAL(18, 3)]", "numeric(18,3)[]", "{1.500}"),
    "pair": ("{'a': 1, 'b': 'x'}", "jsonb", '{"a": 1, "b": "x"}'),
}


def test_every_value_round_trips_exactly(own_target: Path, url: str) -> None:
    put(own_target, ["k"], kinds="SELECT 1 AS k, " + ", ".join(f"{v[0]} AS {n}" for n, v in KINDS.items()))
    publish(own_target, url, tables=["metrics.kinds"])
    typed = "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '{}'::regclass"
    columns = dict(ask(url, typed.format("metrics.kinds")))
    assert {name: columns[name] for name in KINDS} == {name: kind for name, (_, kind, _) in KINDS.items()}
    texts = f"SELECT {', '.join(f'{name}::text' for name in KINDS)} FROM metrics.kinds"
    [row] = ask(f"{url}?options=-c%20timezone%3DUTC", texts)
    assert dict(zip(KINDS, row, strict=True)) == {name: text for name, (_, _, text) in KINDS.items()}


def test_comments_name_foreign_keys_and_lists_in_meta_become_arrays(built: Path, url: str) -> None:
    tables = ["metrics.port_hour", "reference.dim_port", "reference.dim_hour"]
    publish(built, url, tables=tables)
    [(said,)] = ask(url, "SELECT obj_description('metrics.port_hour'::regclass)")
    assert (
        "Foreign keys: (hour_utc) -> reference.dim_hour(hour_utc); "
        "(cluster, switch, port) -> reference.dim_port(cluster, switch, port)."
    ) in said
    lost = "SELECT count(*) FROM metrics.port_hour LEFT JOIN reference.dim_port d USING (cluster, switch, port) "
    assert ask(url, f"{lost} WHERE d.port_key IS NULL") == [(0,)]
    with duckdb.connect(built / "warehouse.duckdb", read_only=True) as ours:
        needs = ours.execute("SELECT model, needs FROM meta.models ORDER BY model").fetchall()
    assert any(listed for _, listed in needs)
    assert ask(url, 'SELECT model, needs FROM meta.models ORDER BY model COLLATE "C"') == needs
    assert publish(built, url, tables=tables).changed == ()


def with_start(target: Path, *tables: str) -> None:
    """Add a schema `start` that shows these tables."""
    put(target, ["relation"], reference__start=f"SELECT unnest({list(tables)}) AS relation")
    change(target, "CREATE SCHEMA IF NOT EXISTS start; DELETE FROM meta.models WHERE starts_with(model, 'start.')")
    for name in tables:
        view = f"start.{name.partition('.')[2]}"
        change(
            target, f"CREATE OR REPLACE VIEW {view} AS FROM {name}; INSERT INTO meta.models "
            f"SELECT * REPLACE ('{view}' AS model, 'view' AS kind) FROM meta.models WHERE model = '{name}'",
        )  # fmt: skip


def test_start_follows_new_rows_new_columns_and_a_table_that_is_gone(own_target: Path, url: str) -> None:
    few(own_target)
    put(own_target, ["cluster"], links="SELECT 'a' AS cluster, 'Leaf-1' AS switch")
    with_start(own_target, "metrics.leaf_hour", "metrics.links")
    publish(own_target, url, tables=["start.leaf_hour"])
    assert ask(url, "SELECT to_regclass('start.links')") == [(None,)]
    first = publish(own_target, url, readers=["dashboards"])
    assert {one.full_name for one in first.changed if one.rows_of} == {"start.links"}
    assert not [one for one in first.sent if one.rows_of], "their rows are those of the tables"
    about = "SELECT obj_description('{0}'::regclass), col_description('{0}'::regclass, 1)"
    assert ask(url, about.format("start.leaf_hour")) == ask(url, about.format("metrics.leaf_hour"))
    assert ask(url, "SELECT has_table_privilege('dashboards', 'start.leaf_hour', 'SELECT')") == [(True,)]
    layouts = "SELECT count(*) FROM warehouse_data.layouts WHERE relation = 'metrics.links'"
    with psycopg.connect(url, autocommit=True) as reader, reader.transaction():
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1")  # a snapshot without a lock
        for value in ("9", "9.5::DOUBLE"):  # another type, for which both views are made anew
            put(own_target, ["cluster"], links=f"SELECT 'a' AS cluster, {value} AS switch")
            with_start(own_target, "metrics.leaf_hour", "metrics.links")
            assert any("view start.links" in one for one in publish(own_target, url, dry_run=True).actions())
            publish(own_target, url)
            both = ask(url, "SELECT a.switch, b.switch FROM start.links a, metrics.links b")
            assert both == [(float(value[:3]), float(value[:3]))]
    assert ask(url, layouts) == [(3,)]
    for n in range(3):  # earlier columns are dropped from both views
        put(own_target, ["cluster"], links=f"SELECT 'a' AS cluster, {n} AS switch")
        publish(own_target, url, tables=["metrics.links"])
    assert ask(url, layouts) == [(1,)]
    assert ask(url, "SELECT switch FROM start.links") == [(2,)]
    change(own_target, "DROP VIEW start.links; DELETE FROM meta.models WHERE model = 'start.links'")
    drop(own_target, "metrics.links")
    assert publish(own_target, url).gone == ("metrics.links", "start.links")
    assert ask(url, "SELECT to_regclass('start.links'), count(*) FROM start.leaf_hour") == [(None, 2)]


def test_tables_have_rows_keys_indexes_and_comments(own_target: Path, url: str) -> None:
    rows = "SELECT 'a' AS name, range AS n, 'x' || range AS port FROM range(2000)"
    put(own_target, ["name", "n", "port"], many=rows)
    publish(own_target, url)
    asked = "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'p'"
    keys = {name.partition(".")[2].rpartition("_r")[0]: key for name, key in ask(url, asked)}
    assert keys["port_hour"] == "PRIMARY KEY (cluster, switch, port, hour_utc)"
    assert len(ask(url, "SELECT 1 FROM pg_indexes WHERE tablename ~ '^many_r'")) == 2  # the key and `port`
    said = "What metrics.port_hour is. [warehouse build 7f3a91c2d0e1f2a3]"
    assert ask(url, "SELECT obj_description('metrics.port_hour'::regclass)") == [(said,)]
    assert ask(url, "SELECT col_description('metrics.leaf_hour'::regclass, 4)") == [("meaning of access_in_bytes [B]",)]
    assert ask(url, "SELECT build_id FROM meta.build") == [("7f3a91c2d0e1f2a3",)]
    with duckdb.connect(str(own_target / "warehouse.duckdb"), read_only=True) as opened:
        for table, order in {"metrics.port_minute": "1, 2, 3, 4", "topology.nic_ports": "1, 2, 3"}.items():
            expected = opened.execute(f"FROM {table} ORDER BY {order}").fetchall()
            assert ask(url, f'SELECT * FROM {table} ORDER BY cluster COLLATE "C", 2, 3, 4') == expected


def test_only_changed_tables_are_sent_again(own_target: Path, url: str) -> None:
    assert not publish(few(own_target), url).unchanged
    there = "SELECT relname, oid FROM pg_class WHERE relkind = 'r' AND relname ~ '^(ports|switches)'"
    before = dict(ask(url, there))
    assert publish(own_target, url).changed == ()
    select = "SELECT * REPLACE (true AS has_counters) FROM topology.ports WHERE port LIKE '%:1'"
    put(own_target, ["cluster", "switch", "port"], topology__ports=select)
    would = publish(own_target, url, dry_run=True)
    assert [table.full_name for table in would.changed] == ["topology.ports", "meta.models"]
    assert ask(url, "SELECT count(*) FROM topology.ports") == [(5,)]
    publish(own_target, url)
    assert ask(url, "SELECT count(*) FROM topology.ports") == [(2,)]
    after = dict(ask(url, there))
    assert all(after[name] == oid for name, oid in before.items()), "nothing that was there is another table now"
    assert [name.rpartition("_r")[0] for name in after.keys() - before.keys()] == ["ports"]


def test_rows_that_the_server_does_not_take_are_named_and_keep_the_old_tables(own_target: Path, url: str) -> None:
    publish(own_target, url, tables=["topology.ports"])
    for value in ("'a' || chr(0)", "['b', 'a' || chr(0)]", "{'t': ['a' || chr(0)]}"):
        put(own_target, ["k"], nul=f"SELECT range AS k, CASE WHEN range = 3 THEN {value} END AS t FROM range(5)")
        with pytest.raises(QueryError, match=r"the server does not take metrics\.nul") as refused:
            publish(own_target, url, tables=["metrics.nul", "metrics.port_hour"])
        assert "line 4" in str(refused.value), "in the order of the grain"
    assert ask(url, "SELECT to_regclass('metrics.port_hour')") == [(None,)]
    put(own_target, ["cluster"], topology__ports="SELECT 'a' AS cluster, 1 AS n FROM range(2)")
    with pytest.raises(QueryError, match=r"the server does not take topology\.ports: could not create unique index"):
        publish(own_target, url, tables=["topology.ports"])
    assert ask(url, "SELECT count(*) FROM topology.ports") == [(5,)]


def test_a_second_publish_is_refused_and_the_first_is_named(own_target: Path, url: str) -> None:
    first = remote.open_server(url)
    remote.hold(first)
    with pytest.raises(QueryError, match="another publish into this database is under way: publisher from"):
        publish(own_target, url, tables=["topology.ports"])
    first.close()


def test_the_password_comes_from_the_environment_or_pgpass_and_is_never_shown(
    own_target: Path, host: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    name = url.rpartition("/")[2]
    with psycopg.connect(f"{host}/postgres", autocommit=True) as made:
        made.execute(f"CREATE ROLE owner_{name} LOGIN PASSWORD 'open sesame'")
        made.execute(f"ALTER DATABASE {name} OWNER TO owner_{name}")
        hba = Path(str(made.execute("SHOW hba_file").fetchone()[0]))
        before = hba.read_text(encoding="utf-8")
        hba.write_text(f"host {name} owner_{name} 127.0.0.1/32 scram-sha-256\n{before}", encoding="utf-8")
        made.execute("SELECT pg_reload_conf()")
    theirs = url.replace("publisher@", f"owner_{name}@")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    until = time.monotonic() + 10
    while (said := command("publish", theirs, "-t", own_target, "-s", "topology.ports", "--dry-run")).status == 0:
        assert time.monotonic() < until, "the server does not ask for a password"
        time.sleep(0.05)  # while the server reloads its settings
    assert "the server does not let us in: connection failed" in said.err_text
    monkeypatch.setenv("PGPASSWORD", "open sesame")
    said = command("publish", theirs, "-t", own_target, "-s", "topology.ports")
    assert (said.status, "sesame" in said.out + said.err) == (0, False)
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pgpass").write_text(f"127.0.0.1:*:{name}:owner_{name}:open sesame\n", encoding="utf-8")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    assert command("publish", theirs, "-t", own_target, "-s", "topology.ports").status == 0


def test_a_missing_psycopg_is_one_sentence(own_target: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    for name in [name for name in sys.modules if name.startswith("warehouse.publish.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    said = command("publish", "postgresql://me@127.0.0.1/none", "-t", own_target)
    assert (said.status, said.err.startswith("error: publishing needs psycopg\n")) == (2, True)


def test_an_unreachable_server_and_a_password_in_the_url_are_one_sentence(own_target: Path) -> None:
    for there, said in (
        ("postgresql://me@127.0.0.1:1/none", "the server does not let us in: connection failed"),
        ("mysql://me@127.0.0.1/none", "not a PostgreSQL URL"),
        ("postgresql://me:secret@127.0.0.1/none", "the URL holds a password"),
    ):
        with pytest.raises(QueryError, match=said):
            publish(own_target, there)
