"""Publishing into a database with objects of users: these stay untouched, and ours are verified."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.publish.postgres_server import ask, drop, few, put, run, stored
from tests.tiny import Tiny
from warehouse.base.errors import QueryError
from warehouse.publish.postgres.publisher import publish
from warehouse.publish.postgres.server import ident
from warehouse.runner import catalog
from warehouse.store.manifest import read_manifest
from warehouse.store.signatures import stamp

psycopg = pytest.importorskip("psycopg")
PORTS = ["cluster", "switch", "port"]
ONE = ["topology.ports"]
USERS = """
    CREATE SCHEMA IF NOT EXISTS metrics; CREATE SCHEMA IF NOT EXISTS meta; CREATE SCHEMA warehouse_next;
    CREATE TABLE metrics.my_secret AS SELECT 42 AS n; CREATE INDEX ON metrics.my_secret (n);
    CREATE TABLE warehouse_next.keep AS SELECT 1 AS k; COMMENT ON TABLE warehouse_next.keep IS 'mine';
    CREATE TABLE meta.notes (said text PRIMARY KEY); INSERT INTO meta.notes VALUES ('a');
    CREATE VIEW meta.loud AS SELECT upper(said) AS said FROM meta.notes;
"""


def dump(url: str, *options: str) -> str:
    """Return the `pg_dump` of some objects without random keys of new releases."""
    program = shutil.which("pg_dump") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/pg_dump")), None)
    if program is None:
        pytest.skip("no pg_dump: apt-get install postgresql-client")
    said = subprocess.run([program, url, *options], capture_output=True, text=True, check=True).stdout
    return "\n".join(line for line in said.splitlines() if not line.startswith(("\\restrict", "\\unrestrict")))


def objects(url: str) -> set[str]:
    """Return schemas and their tables and views, without system objects."""
    rows = ask(
        url,
        "SELECT nspname || coalesce('.' || relname, '') FROM pg_namespace n LEFT JOIN LATERAL (SELECT relname FROM "
        "pg_class c WHERE c.relnamespace = n.oid AND relkind IN ('r', 'p', 'v') UNION ALL SELECT NULL) c ON true "
        "WHERE nspname !~ '^pg_|^information_schema$|^public$'",
    )
    return {row[0] for row in rows}


FOREIGN = {
    "table metrics.leaf_hour": "CREATE TABLE metrics.leaf_hour AS SELECT 1 AS mine",
    "view meta.build": "CREATE VIEW meta.build AS SELECT 1 AS mine",
    "materialized view meta.columns": "CREATE MATERIALIZED VIEW meta.columns AS SELECT 1 AS mine",
    "type metrics.port_hour": "CREATE TYPE metrics.port_hour AS ENUM ('mine')",
    "sequence metrics.server_hour": "CREATE SEQUENCE metrics.server_hour",
    "index metrics.suspect_links": "CREATE TABLE metrics.t (n int); CREATE INDEX suspect_links ON metrics.t (n)",
    "schema warehouse_data": "CREATE SCHEMA warehouse_data; CREATE TABLE warehouse_data.published (n int)",
}
"""Objects of a user with names that a publish needs, as they are named."""


def test_name_conflicts_with_user_objects_are_refused_and_a_prefix_avoids_them(
    own_target: Path, url: str, admin: str, command: Command
) -> None:
    run(admin, USERS + ";".join(FOREIGN.values()))
    run(admin, "GRANT ALL ON SCHEMA metrics, meta TO publisher")
    before, there = dump(admin), objects(admin)
    for more in ([], ["--dry-run"]):
        said = command("publish", url, "-t", own_target, *more)
        assert said.status == 2
        assert f"{len(FOREIGN)} objects that this program did not make" in said.err_text
        assert [named for named in FOREIGN if named not in said.err_text] == []
        assert "--schema-prefix" in said.err_text
        assert objects(admin) == there
    assert dump(admin) == before
    assert command("publish", url, "-t", own_target, "--schema-prefix", "wh_").status == 0
    assert ask(url, "SELECT count(*) FROM wh_metrics.leaf_hour") == [(2,)]
    assert dump(admin, "-N", "wh_*") == before


def test_user_objects_stay_unchanged_through_all_publish_actions(own_target: Path, url: str, admin: str) -> None:
    run(admin, USERS + "GRANT ALL ON SCHEMA metrics, meta TO publisher WITH GRANT OPTION")
    mine = [option for name in ("metrics.my_secret", "warehouse_next.keep", "meta.notes", "meta.loud")
            for option in ("-t", name)]  # fmt: skip
    before = dump(admin, *mine)
    few(own_target)
    for column in ("k", "k", "other"):
        put(own_target, [], extra=f"SELECT random() AS {column}")
        publish(own_target, url, readers=["looks"])
    drop(own_target, "metrics.extra")
    assert publish(own_target, url, tables=ONE).gone == (), "of named tables alone nothing goes"
    assert publish(own_target, url).gone == ("metrics.extra",)
    assert dump(admin, *mine) == before
    run(url, "DROP VIEW topology.ports; CREATE VIEW topology.ports AS SELECT 'mine' AS cluster")
    put(own_target, PORTS, topology__ports="SELECT * FROM topology.ports LIMIT 1")
    with pytest.raises(QueryError, match=r"or that somebody changed since, has the names that it needs: view topology"):
        publish(own_target, url, tables=ONE)
    assert ask(url, "TABLE topology.ports") == [("mine",)]
    run(url, "DROP VIEW topology.ports")
    publish(own_target, url, tables=ONE)
    assert ask(url, "SELECT count(*) FROM topology.ports") == [(1,)]


def test_a_dry_run_lists_exactly_the_created_replaced_and_dropped_objects(own_target: Path, url: str) -> None:
    def step() -> list[str]:
        before = objects(url)
        said = list(publish(own_target, url, dry_run=True).actions())
        assert objects(url) == before
        publish(own_target, url)
        created, dropped = objects(url) - before, before - objects(url)
        named = [line.replace(",", "").split()[:3] for line in said]
        registry = {f"warehouse_data.{name}" for name in ("publishes", "layouts", "versions", "published")}
        assert {name for verb, _, name in named if verb == "create"} == created - registry
        assert {name for verb, _, name in named if verb == "drop"} == dropped
        return [line for line in said if "meta." not in line and "warehouse_data" not in line]

    few(own_target)
    assert "create   view metrics.leaf_hour  2 rows" in step()
    assert step() == []
    for select, said in (
        ("* FROM topology.ports LIMIT 2", "replace  rows of topology.ports  2 rows"),
        ("* EXCLUDE (source) FROM topology.ports", "replace  view topology.ports  2 rows, other columns"),
        ("* FROM topology.ports LIMIT 1", "replace  rows of topology.ports  1 rows"),
    ):
        put(own_target, PORTS, topology__ports=f"SELECT {select}")
        assert step() == [said]
    drop(own_target, "topology.ports")
    assert step() == ["drop     view topology.ports"]
    for number in (1, 2):  # two later publishes: then the rows of the dropped table go
        put(own_target, ["k"], other=f"SELECT {number} AS k")
        step()
    assert ask(url, "SELECT count(*) FROM pg_class WHERE relname ~ '^ports_[rc]'") == [(0,)]


STANDING = {
    "mine.quiet on topology.ports": "CREATE VIEW mine.quiet AS SELECT * FROM topology.ports WHERE server IS NULL",
    "mine.kept on topology.ports": "CREATE MATERIALIZED VIEW mine.kept AS SELECT port FROM topology.ports",
    "function mine.all_ports() on topology.ports": (
        "CREATE FUNCTION mine.all_ports() RETURNS SETOF topology.ports LANGUAGE sql AS 'TABLE topology.ports'"
    ),
    "topology.ports (rule quietly)": "CREATE RULE quietly AS ON DELETE TO topology.ports DO INSTEAD NOTHING",
    "trigger no on view topology.ports on topology.ports": """
        CREATE FUNCTION mine.no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER no INSTEAD OF DELETE ON topology.ports FOR EACH ROW EXECUTE FUNCTION mine.no()""",
}
"""Objects of a user that stand on a published view, as they are named."""


def test_user_views_follow_new_rows_and_columns_and_dependents_are_named_before_a_view_is_dropped(
    own_target: Path, url: str, admin: str
) -> None:
    publish(few(own_target), url)
    run(admin, "CREATE SCHEMA mine;" + ";".join(STANDING.values()))
    mine = dump(admin, "-n", "mine")
    put(own_target, PORTS, topology__ports="SELECT * FROM topology.ports WHERE port_class = 'uplink'")
    publish(own_target, url, tables=ONE)
    assert ask(admin, "SELECT count(*) FROM mine.quiet") == [(2,)]
    put(own_target, PORTS, topology__ports="SELECT *, 1 AS added FROM topology.ports LIMIT 1")
    publish(own_target, url, tables=ONE)
    assert ask(admin, "SELECT count(*), (SELECT min(added) FROM topology.ports) FROM mine.quiet") == [(1, 1)]
    assert dump(admin, "-n", "mine") == mine
    before = dump(admin)
    for is_dropped in (False, True):
        if is_dropped:
            drop(own_target, "topology.ports")
        else:
            put(own_target, PORTS, topology__ports="SELECT * REPLACE (1 AS server) FROM topology.ports")
        for dry_run in (True, False):
            with pytest.raises(QueryError, match=f"{len(STANDING)} objects of yours depend on what would") as refused:
                publish(own_target, url, dry_run=dry_run)
            assert [named for named in STANDING if named not in refused.value.message] == []
            assert "--schema-prefix" in str(refused.value.hint)
    assert dump(admin) == before


def test_reader_roles_can_read_only_published_tables(own_target: Path, url: str, admin: str) -> None:
    run(admin, USERS + "GRANT ALL ON SCHEMA metrics, meta TO publisher")
    few(own_target)
    with pytest.raises(QueryError, match="the schema meta belongs to another role, so that publish cannot let looks"):
        publish(own_target, url, readers=["looks"])
    assert ask(admin, "SELECT to_regclass('metrics.leaf_hour')") == [(None,)]
    run(admin, "GRANT ALL ON SCHEMA metrics, meta TO publisher WITH GRANT OPTION")
    assert publish(own_target, url, readers=["looks"]).sent == (), "what was sent is there"
    put(own_target, PORTS, topology__ports="SELECT * REPLACE (1 AS server) FROM topology.ports LIMIT 1")
    publish(own_target, url)  # with a new view and the old grants
    with psycopg.connect(admin, autocommit=True) as reader:
        reader.execute("SET ROLE looks")
        assert reader.execute("SELECT count(*) FROM topology.ports").fetchone() == (1,)
        for refused in (
            "SELECT * FROM metrics.my_secret",
            "SELECT * FROM warehouse_data.published",
            f"SELECT * FROM {stored(url, 'topology.ports')}",
            "DELETE FROM topology.ports",
            "CREATE TABLE metrics.mine (a int)",
            "DROP VIEW topology.ports",
        ):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState)):
                reader.execute(refused)


def test_missing_privileges_are_reported_before_sending(own_target: Path, url: str, admin: str) -> None:
    run(admin, USERS)
    before, database = dump(admin), admin.rpartition("/")[2]
    with pytest.raises(QueryError, match="the publishing role may not change schema meta, schema metrics"):
        publish(few(own_target), url)
    run(admin, f"REVOKE CREATE ON DATABASE {database} FROM publisher")
    with pytest.raises(QueryError, match="the role publisher may not create schemas in the database"):
        publish(own_target, url)
    run(admin, "CREATE ROLE weak LOGIN")
    with pytest.raises(QueryError, match="there is no role nobody_yet, and the publishing role may not create it"):
        publish(own_target, url.replace("publisher@", "weak@"), readers=["nobody_yet"])
    run(admin, f"DROP ROLE weak; GRANT CREATE ON DATABASE {database} TO publisher")
    assert dump(admin) == before


def test_deleted_rows_are_sent_again_and_changed_rows_are_found_by_verify(own_target: Path, url: str) -> None:
    def sent(*, verify: bool = False) -> list[str]:
        done = publish(own_target, url, tables=["topology.ports", "topology.switches"], verify=verify)
        return [table.full_name for table in done.sent]

    sent()
    run(url, "DELETE FROM topology.ports WHERE port_class = 'uplink'")
    assert sent() == ["topology.ports"]
    assert ask(url, "SELECT count(*) FROM topology.ports") == [(5,)]
    run(url, f"DROP TABLE {stored(url, 'topology.ports')}; DROP VIEW topology.switches")
    sent()
    assert ask(url, "SELECT count(*), (SELECT count(*) FROM topology.switches) FROM topology.ports") == [(5, 3)]
    run(url, "UPDATE topology.ports SET server = 'GPU-9' WHERE server = 'GPU-1'")
    assert sent() == [], "their count is right"
    assert sent(verify=True) == ["topology.ports"]
    assert ask(url, "SELECT count(*) FROM topology.ports WHERE server = 'GPU-9'") == [(0,)]
    assert sent(verify=True) == []


def test_user_indexes_and_grants_survive_or_are_named(own_target: Path, url: str, admin: str, command: Command) -> None:
    many = "SELECT range AS k, 'p' || range AS port, 'x' AS server FROM range({})"
    put(own_target, ["k", "port"], many=many.format(1000))
    publish(own_target, url, tables=["metrics.many"])
    rows = stored(url, "metrics.many")
    [(every,)] = ask(url, "SELECT parent FROM warehouse_data.layouts WHERE relation = 'metrics.many'")
    run(url, f"CREATE INDEX server ON {rows} (server) WHERE server IS NOT NULL; "
        f"CREATE INDEX nics ON warehouse_data.{every} (k); "
        f'CREATE UNIQUE INDEX " ON USING " ON {rows} (lower(port), k)')  # fmt: skip
    run(admin, "CREATE ROLE bob; CREATE ROLE eve")
    run(url, "GRANT SELECT ON metrics.many TO bob WITH GRANT OPTION; GRANT SELECT (port) ON metrics.many TO eve; "
        f"GRANT SELECT ON {rows} TO eve")  # fmt: skip

    def indexes() -> list[str]:
        texts = "SELECT split_part(pg_get_indexdef(indexrelid), ' USING btree ', 2), indisunique FROM pg_index"
        found = ask(url, f"{texts} WHERE indrelid = '{stored(url, 'metrics.many')}'::regclass")
        return sorted(f"{'unique ' if unique else ''}{said}" for said, unique in found)

    def grants() -> list[tuple[object, ...]]:
        read = f"has_table_privilege('eve', '{stored(url, 'metrics.many')}', 'SELECT')"
        column = "SELECT attacl::text FROM pg_attribute WHERE attrelid = c.oid AND attname = 'port'"
        return ask(url, f"SELECT relacl::text, ({column}), {read} FROM pg_class c WHERE oid = 'metrics.many'::regclass")

    before, given = indexes(), grants()
    assert len(before) == 5  # with the two of the publisher, which are not copied as those of a user
    put(own_target, ["k", "port"], many=many.format(1001))
    publish(own_target, url, tables=["metrics.many"])
    assert stored(url, "metrics.many") != rows
    assert (indexes(), grants()) == (before, given)
    put(own_target, ["k", "port"], many="SELECT * EXCLUDE (server) FROM metrics.many")
    said = command("publish", url, "-t", own_target, "-s", "metrics.many")
    assert said.status == 0
    assert "lost index many_r" in said.err_text
    assert 'column "server" does not exist' in said.err_text
    assert (len(indexes()), grants()) == (4, given)
    run(admin, "DROP OWNED BY bob, eve; DROP ROLE bob; DROP ROLE eve")


def test_rows_stay_until_two_later_publishes_are_done_and_are_not_sent_again(own_target: Path, url: str) -> None:
    seen = []
    for n in range(5):
        put(own_target, ["n"], one=f"SELECT {n} AS n")
        publish(own_target, url, tables=["metrics.one"])
        seen.append(stored(url, "metrics.one"))
        there = [ask(url, f"SELECT to_regclass('{one}') IS NOT NULL")[0][0] for one in seen]
        assert there == [position >= n - 1 for position in range(n + 1)]
    put(own_target, ["n"], one="SELECT 3 AS n")  # as after `warehouse rollback`
    result = publish(own_target, url, tables=["metrics.one"])
    assert ([table.full_name for table in result.changed], result.sent) == (["metrics.one"], ())
    assert ask(url, "TABLE metrics.one") == [(3,)]


def test_names_that_the_server_would_cut_are_refused(own_target: Path, url: str) -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(
        QueryError, match=r"the schema x+warehouse_data has 64 bytes, and PostgreSQL cuts names after 63"
    ):
        publish(own_target, nowhere, schema_prefix="x" * 50)
    with pytest.raises(QueryError, match="cuts names after 63"):
        publish(own_target, nowhere, readers=["é" * 32])
    name = "n" * 64
    put(own_target, ["k"], **{name: "SELECT 1 AS k"})
    with pytest.raises(QueryError, match="cuts names after 63"):
        publish(own_target, url)
    put(own_target, ["k"], **{name[:63]: f"SELECT 1 AS k, 2 AS {ident('ä' * 31)}"})
    publish(own_target, url, tables=[f"metrics.{name[:63]}"], schema_prefix="x" * 49)
    assert ask(url, f"TABLE {'x' * 49}metrics.{name[:63]}") == [(1, 2)]


def test_damaged_parts_are_not_sent(tiny: Tiny, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Detected by file stamps before reading and by digests before sending."""
    monkeypatch.setattr(catalog, "SMALL_BYTES", 0)
    tiny.model(
        "metrics.hour",
        "SELECT make_timestamp(SaveTimeUTC // 3600000 * 3600000000) AS hour_utc, sum(InOctets) AS bytes\n"
        "FROM raw.port_counters GROUP BY ALL",
        {"hour_utc": "TIMESTAMP", "bytes": "BIGINT"},
        "partition: hour_utc",
    )
    tiny.made()
    part, *others = sorted((tiny.target / "parts" / "metrics.hour").rglob("*.parquet"))
    content = part.read_bytes()
    name = part.relative_to(tiny.target).as_posix()
    part.write_bytes(others[0].read_bytes())  # a valid part with other content
    with pytest.raises(QueryError, match="1 part that would be read is damaged") as refused:
        publish(tiny.target, url)
    assert name in str(refused.value)

    (path,) = tiny.target.glob("builds/*/manifest.json")
    manifest = read_manifest(path)
    parts = [one | {"stamp": stamp(part.stat())} if one["path"] == name else one for one in map(dict, manifest.parts)]
    manifest._replace(parts=parts).write(path)
    assert len(tiny.ask("FROM metrics.hour")) == 2, "its stamp does not show it"
    with pytest.raises(QueryError, match="1 part that would be read is damaged"):
        publish(tiny.target, url)
    assert ask(url, "SELECT nspname FROM pg_namespace WHERE nspname ~ 'warehouse|metrics'") == []

    part.write_bytes(content)
    assert {table.full_name for table in publish(tiny.target, url).sent} >= {"metrics.hour", "metrics.total"}
    assert ask(url, "SELECT count(*) FROM metrics.hour") == [(2,)]
