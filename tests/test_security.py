"""Guarantees of SECURITY.md: no input writes, reads outside, runs code, or damages the last good warehouse.

Every hostile input ends in one sentence, or in a file that is listed with the reason why it is not read. A secret file
lies beside them, and nothing outside the target may change.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Completed, call
from tests.tiny import Tiny
from warehouse.project.project import Project

SECRET = "nobody may read this"
Files = dict[str, bytes]


class Room:
    """Folder with a project, a data folder, a built target, and a secret beside them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.tiny = Tiny(base)
        self.tiny.model(
            "staging.seen",
            "SELECT f.path, p.PortName AS port, t.accessport AS access, a.value FROM raw.files AS f "
            "LEFT JOIN raw.port_counters AS p ON p.filename = f.read_path "
            "LEFT JOIN raw.cluster_topology AS t ON t.filename = f.release_path "
            "LEFT JOIN raw.acme_published AS a ON a.filename = f.release_path "
            "QUALIFY row_number() OVER (PARTITION BY f.path ORDER BY p.SaveTimeUTC) = 1",
            {"path": "VARCHAR", "port": "VARCHAR", "access": "VARCHAR", "value": "DOUBLE"},
        )
        self.secret = base / "secret.csv"
        self.secret.write_text(f"{SECRET}\n", encoding="utf-8")
        self.target = self.tiny.target
        assert self.tiny.build().status == 0
        self.rows = self.tiny.ask("FROM metrics.total")

    def outside(self) -> Files:
        """Return all files except those of the target."""
        paths = (path for path in self.base.rglob("*") if self.target not in path.parents)
        return {str(path): path.read_bytes() for path in paths if path.is_file() and not path.is_symlink()}

    def parts(self) -> Files:
        """Return the published parts and the catalog."""
        files = [self.target / "warehouse.duckdb", *self.target.glob("parts/**/*.parquet")]
        return {str(path): path.read_bytes() for path in files}

    def run(self, *arguments: str | Path) -> Completed:
        return call(*arguments, cwd=self.base)

    def sql(self, text: str, *options: str) -> Completed:
        return self.run("sql", "-t", self.target, *options, text)


@contextlib.contextmanager
def opened(base: Path) -> Iterator[Room]:
    """Open a room whose project replaces the shipped one."""
    base.mkdir()
    project = base / "project"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Project, "open", lambda _=None: Project((project,)))
        yield Room(base)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """Open a room of the test's own."""
    with opened(tmp_path / "room") as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """Open one room for tests that must not change it."""
    with opened(tmp_path_factory.mktemp("shared") / "room") as found:
        yield found


def is_one_sentence(said: Completed) -> None:
    """Check that the command ended with a status and one sentence, at most followed by a hint."""
    assert said.status in (1, 2), said
    first, *rest = said.err[said.err.index("error: ") :].splitlines()
    assert len(first) > len("error: "), said
    assert all(line.startswith("       ") for line in rest), said
    assert len(rest) <= 8, said
    is_quiet(said)


def is_quiet(said: Completed) -> None:
    """Check that the output has no part of the secret and no cursor movement."""
    assert SECRET not in said.out + said.err
    assert "\x1b" not in said.out + said.err
    assert "Traceback" not in said.err


def is_as_before(room: Room, before: Files, parts: Files | None = None) -> None:
    assert room.outside() == before
    assert room.parts().items() >= (parts or {}).items()
    assert room.tiny.ask("FROM metrics.total") == room.rows


# queries: they only read, and only in few folders -------------------------------------------------

SQL = [
    "COPY (SELECT 1) TO '{base}/pwned'",
    "COPY (SELECT 1) TO '{target}/parts/x.parquet'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{target}/warehouse.duckdb'",
    "WITH a AS (COPY (SELECT 1) TO '{target}/pwned') SELECT 1",
    "SELECT 1; COPY (SELECT 1) TO '{target}/pwned'",
    "EXPORT DATABASE '{base}/pwned'",
    "ATTACH '{base}/pwned.duckdb' AS x",
    "ATTACH '{target}/warehouse.duckdb' AS x",
    "INSTALL httpfs",
    "LOAD '{base}/evil.duckdb_extension'",
    "SET enable_external_access = true",
    "RESET allowed_directories",
    "PRAGMA enable_profiling",
    "CREATE TABLE x AS SELECT 1",
    "CREATE MACRO f() AS TABLE SELECT * FROM read_text('{secret}')",
    "INSERT INTO metrics.total SELECT * FROM metrics.total",
    "DROP TABLE metrics.total",
    "DELETE FROM meta.build",
    "FROM '{secret}'",
    "FROM read_text('{secret}')",
    "FROM read_csv('{base}/*.csv')",
    "FROM read_csv('{target}/../secret.csv')",
    "FROM read_blob('/etc/passwd')",
    "FROM glob('/etc/pass*')",
    "FROM read_csv('https://example.org/x.csv')",
    "FROM read_parquet('s3://bucket/x.parquet')",
    "FROM query('COPY (SELECT 1) TO ''{target}/pwned''')",
    "FROM duckdb_secrets()",
    "SELECT getenv('HOME')",
    "SELECT nextval('s')",
    "FROM python_map_function(1, 2)",
    "SELECT write_log('x')",
    "CALL enable_logging(storage = 'file', storage_path = '{target}/pwned')",
    "SELECT 1\x00; DROP TABLE metrics.total",
    "SELECT '\udcff'",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000,
]


@pytest.mark.parametrize("sql", SQL, ids=lambda sql: sql[:40].encode("ascii", "replace").decode())
def test_a_query_only_reads_inside_the_warehouse(shared: Room, sql: str) -> None:
    before, parts = shared.outside(), shared.parts()
    text = sql.replace("{base}", str(shared.base)).replace("{target}", str(shared.target))
    is_one_sentence(shared.sql(text.replace("{secret}", str(shared.secret))))
    is_as_before(shared, before, parts)


def test_a_query_has_a_time_and_memory_limit(shared: Room) -> None:
    endless = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range <> b.range"
    said = shared.sql(endless, "--timeout", "0.3")
    is_one_sentence(said)
    assert "the query took longer than 0.3 s" in said.err
    said = shared.sql("SELECT list(r) FROM range(40000000) t(r)", "--memory", "50MB")
    is_one_sentence(said)
    assert shared.sql("SELECT 1 AS one", "--timeout", "60").out == "one\n1\n"
    for wrong in ("0", "-1", "nan", "soon"):
        assert shared.sql("SELECT 1", "--timeout", wrong).status == 2


@pytest.mark.parametrize("value", ["x'; DROP TABLE metrics.total; --", "{{ 7 * 7 }}", "$(touch pwned)", "../../etc"])
def test_a_value_of_a_named_query_is_not_parsed_as_sql(room: Room, value: str) -> None:
    before, parts = room.outside(), room.parts()
    head = "/* ---\nabout: Echo.\nparams:\n  v: VARCHAR any text\n--- */"
    room.tiny.write("sql/queries/echo.sql", f"{head}\nSELECT $v AS v\n")
    said = room.run("sql", "-t", room.target, "-q", "echo", "--v", value, "--format", "csv")
    assert (said.status, said.out) == (0, f"v\n{value}\n")
    is_as_before(room, {**before, **room.outside()}, parts)


# names: of tables, columns, selectors, folders ----------------------------------------------------

NAMES = [
    ("show", "../../etc/passwd"),
    ("show", "metrics.total; DROP TABLE metrics.total"),
    ("show", "x\" FROM (COPY (SELECT 1) TO 'pwned') --"),
    ("lineage", "metrics.total'; --"),
    ("lineage", "metrics.total.\x1b[31m"),
    ("render", "../../../etc/passwd"),
    ("render", "{{ ''.__class__ }}"),
    ("test", "*; rm -rf /"),
    ("sql", "-q", "../../../etc/passwd"),
    ("sql", "-f", "/etc/shadow-not-there"),
    ("sql", "-o", "{target}/parts/x.csv", "SELECT 1"),
    ("build", "-d", "{data}", "-t", "{target}", "-s", "metrics.total;x"),
    ("build", "-d", "{base}/no\x1bfolder", "-t", "{target}"),
    ("build", "-d", "{target}", "-t", "{target}"),
]


@pytest.mark.parametrize("arguments", NAMES, ids=lambda arguments: " ".join(arguments)[:40].replace("\x1b", "ESC"))
def test_a_name_is_not_parsed_as_sql_or_a_path(shared: Room, arguments: tuple[str, ...]) -> None:
    before, parts = shared.outside(), shared.parts()
    places = {"{base}": shared.base, "{target}": shared.target, "{data}": shared.tiny.data}
    filled = []
    for one in arguments:
        for name, path in places.items():
            one = one.replace(name, str(path))
        filled.append(one)
    target = () if arguments[0] in ("build", "test", "render") else ("-t", str(shared.target))
    is_one_sentence(shared.run(arguments[0], *target, *filled[1:]))
    is_as_before(shared, before, parts)


# models, front matter, macros, tests of models ----------------------------------------------------


def laughs() -> str:
    """Return nine lines of YAML aliases that expand to a billion values."""
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines)


MODEL = "models/metrics/evil.sql"
HEAD = "about: A model.\ngrain: [a]\ncolumns:\n  a: BIGINT"
GOES_ON = "a) IS NOT TRUE) FROM metrics.evil; COPY (SELECT 1) TO '{base}/pwned'; SELECT count(*) FILTER (WHERE (1"
PYTHON = HEAD.replace("grain", "reads: [staging.ports]\ngrain")
GIVEN = "x:\n  given:\n    staging.ports: |\n      port, speed\n      a, (SELECT 1)\n  expect: |\n    speed\n    1\n"
SHELL = 'def model(x):\n    os.system("touch pwned")\n'
MODELS = {
    "COPY in WITH": (MODEL, HEAD, "WITH x AS (COPY (SELECT 1) TO '{base}/pwned') SELECT 1 AS a"),
    "INSERT in WITH": (MODEL, HEAD, "WITH x AS (INSERT INTO y VALUES (1) RETURNING *) SELECT 1 AS a"),
    "two statements": (MODEL, HEAD, "SELECT 1 AS a; COPY (SELECT 1) TO '{base}/pwned'"),
    "no SELECT": (MODEL, HEAD, "COPY (SELECT 1) TO '{base}/pwned'"),
    "ATTACH": (MODEL, HEAD, "ATTACH '{base}/pwned'"),
    "the end of a bracket": (MODEL, HEAD, "SELECT 1 AS a) TO '{base}/pwned' --"),
    "a check that copies": (MODEL, f"{HEAD}\nchecks:\n  - none: WITH x AS (COPY (SELECT 1) TO '{{base}}/pwned') FROM x",
                            "SELECT 1 AS a"),
    "a check that reads a file": (MODEL, f"{HEAD}\nchecks:\n  - none: SELECT * FROM read_text('{{secret}}')",
                                  "SELECT 1 AS a"),
    "a condition that reads a file": (MODEL, f"{HEAD}\nchecks:\n  - a < (SELECT count(*) FROM '{{secret}}')",
                                      "SELECT 1 AS a"),
    "a condition that ends its query": (MODEL, f"{HEAD}\nchecks:\n  - 'a) IS NOT TRUE; COPY x TO ''y''; --'",
                                        "SELECT 1 AS a"),
    "a condition that goes on": (MODEL, f"{HEAD}\nchecks:\n  - \"{GOES_ON}\"", "SELECT 1 AS a"),
    "a Python object": (MODEL, f"{HEAD}\nsources: !!python/object/apply:os.system ['touch {{base}}/pwned']",
                        "SELECT 2 AS a"),
    "a billion laughs": (MODEL, laughs(), "SELECT 1 AS a"),
    "itself": (MODEL, "about: &a [*a]", "SELECT 1 AS a"),
    "deep": (MODEL, "about: " + "[" * 3000, "SELECT 1 AS a"),
    "a key twice": (MODEL, f"{HEAD}\nabout: Other.", "SELECT 1 AS a"),
    "control characters": (MODEL, f"{HEAD}\nsources: \x1b[2J\x07", "SELECT 1 AS a"),
    "a column's name": (MODEL, HEAD.replace("a: BIGINT", "'a\" FROM x; --': BIGINT"), "SELECT 1 AS a"),
    "a column's type": (MODEL, HEAD.replace("BIGINT", "BIGINT) TO 'x"), "SELECT 1 AS a"),
    "a grain": (MODEL, HEAD.replace("[a]", "['a) FROM y; --']"), "SELECT 1 AS a"),
    "a partition": (MODEL, f"{HEAD}\npartition: ../../x", "SELECT 1 AS a"),
    "a kernel": (MODEL, f"{HEAD}\nkernel: os", "SELECT 1 AS a"),
    "the way out of the sandbox": (MODEL, HEAD, "SELECT {{ ''.__class__.__mro__[1].__subclasses__() }} AS a"),
    "a method of a text": (MODEL, HEAD, "SELECT {{ ''.format.__globals__ }} AS a"),
    "Jinja's globals": (MODEL, HEAD, "SELECT {{ cycler.__init__.__globals__.os.system('touch pwned') }} AS a"),
    "an include": (MODEL, HEAD, "SELECT {% include '/etc/passwd' %} AS a"),
    "an import": (MODEL, HEAD, "SELECT {% import 'os' as os %}1 AS a"),
    "a power": (MODEL, HEAD, "SELECT {{ 9 ** 9 ** 9 }} AS a"),
    "a long text": (MODEL, HEAD, "SELECT {{ 'x' * 9999999999 }} AS a"),
    "several lines": (MODEL, HEAD, "SELECT {{ '1\\n2' }} AS a"),
    "a macro file": ("sql/macros/evil.sql", None, "{{ self.__init__.__globals__ }}{% macro f() %}{% endmacro %}"),
    "an import of os": ("models/metrics/evil.py", None, f'"""---\n{PYTHON}\n---"""\nimport os\n{SHELL}'),
    "a test that reads": ("models/metrics/total.test.yaml", None, GIVEN),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_a_project_file_runs_only_its_select(room: Room, case: str) -> None:
    name, head, body = MODELS[case]
    text = body if head is None else f"/* ---\n{head}\n--- */\n{body}\n"
    room.tiny.write(name, text.replace("{base}", str(room.base)).replace("{secret}", str(room.secret)))
    if name.startswith("sql/macros"):
        room.tiny.write(MODEL, f"/* ---\n{HEAD}\n--- */\nSELECT {{{{ f() }}}} AS a\n")
    before, parts = room.outside(), room.parts()
    said = room.run("test") if name.endswith(".yaml") else room.tiny.build()
    is_one_sentence(said)
    is_as_before(room, before, parts)


# files of a data folder ---------------------------------------------------------------------------

Put = Callable[[Room, Path], object]
HEADER = b"SaveTime,SaveTimeUTC,DeviceName,PortName,InPkts,InOctets,OutPkts,OutOctets,InRatio,OutRatio\n"


def workbook(parts: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as book:
        for name, part in parts.items():
            book.writestr(name, part)
    return content.getvalue()


def with_entities(declared: bytes, used: bytes) -> bytes:
    said = b'<?xml version="1.0"?><!DOCTYPE x [' + declared + b"]><workbook>" + used + b"</workbook>"
    return workbook({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": said})


LAUGHS = b"".join(b'<!ENTITY l%d "%s">' % (n, (b"&l%d;" % (n - 1)) * 10 if n else b"lol") for n in range(10))


class Run:
    """Pickle that would run code."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch pwned",)


FILES: dict[str, tuple[str, Put]] = {
    "a link to a secret": ("Leaf-1_1_2.csv", lambda room, path: path.symlink_to(room.secret)),
    "a link to itself": ("Leaf-1_1_2.csv", lambda _, path: path.symlink_to(path)),
    "a link to all files": ("all", lambda _, path: path.symlink_to("/", target_is_directory=True)),
    "a link to the kernel": ("all", lambda _, path: path.symlink_to("/proc", target_is_directory=True)),
    "a link to its own folder": ("all", lambda _, path: path.symlink_to("..", target_is_directory=True)),
    "a pipe": ("Leaf-1_1_2.csv", lambda _, path: os.mkfifo(path)),
    "a folder": ("Leaf-1_1_2.csv", lambda _, path: path.mkdir()),
    "one endless line": ("Leaf-1_1_2.csv", lambda _, path: path.write_bytes(HEADER + b"x" * 20_000_000)),
    "zeros": ("Leaf-1_1_2.csv", lambda _, path: path.write_bytes(HEADER + bytes(100_000))),
    "SQL for a port": ("Leaf-1_1_2.csv", lambda _, path: path.write_bytes(
        HEADER + b"2024/05/24 x 00:00:01.000,1716480001000,NH-Leaf-1.GPU,'); COPY x TO 'pwned'; --,1,1,1,1,0,0\n")),
    "a packed bomb": ("Leaf-1_1_2.csv.gz", lambda _, path: path.write_bytes(gzip.compress(bytes(50_000_000)))),
    "what is not packed": ("Leaf-1_1_2.csv.gz", lambda _, path: path.write_bytes(b"no gzip")),
    "a name with control characters": ("Leaf-1\x1b[2J\n_1_2.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name with SQL": ("x'); DROP SCHEMA raw; --.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name with a glob": ("Leaf-1_[*]_?{a,b}.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name with Jinja": ("{{ 7 * 7 }}{% raw %}.csv", lambda _, path: path.write_bytes(HEADER)),
    "a name that is no text": (os.fsdecode(b"Leaf-1_\xff.csv"), lambda _, path: path.write_bytes(HEADER)),
    "a workbook that is none": ("b.xlsx", lambda _, path: path.write_bytes(b"PK\x03\x04 no")),
    "a workbook that is a bomb": ("b.xlsx", lambda _, path: path.write_bytes(
        workbook({"[Content_Types].xml": b"<Types/>", "xl/workbook.xml": bytes(300_000_000)}))),
    "a workbook of many parts": ("b.xlsx", lambda _, path: path.write_bytes(
        workbook({f"x{n}": b"" for n in range(3000)}))),
    "a workbook that laughs": ("b.xlsx", lambda _, path: path.write_bytes(with_entities(LAUGHS, b"&l9;"))),
    "a workbook that reads": ("b.xlsx", lambda room, path: path.write_bytes(
        with_entities(b'<!ENTITY e SYSTEM "file://%s">' % str(room.secret).encode(), b"&e;"))),
    "a workbook that writes": ("b.xlsx", lambda _, path: path.write_bytes(
        workbook({"../../pwned": b"x", "/pwned": b"x"}))),
    "a pickle that runs": ("util_pkl/x.pkl", lambda _, path: path.write_bytes(pickle.dumps([Run()]))),
    "a pickle that evaluates": ("util_pkl/x.pkl", lambda _, path: path.write_bytes(
        b"cbuiltins\neval\n(S'__import__(\"os\").system(\"touch pwned\")'\ntR.")),
    "a pickle that is cut": ("util_pkl/x.pkl", lambda _, path: path.write_bytes(pickle.dumps([1.0] * 99)[:-7])),
    "a log that moves the cursor": ("taskinfo/t/x.log", lambda _, path: path.write_bytes(b"\x1b[2J\x00" * 9999)),
}  # fmt: skip


def test_a_damaged_part_is_rebuilt(room: Room) -> None:
    """Check the part itself; tests/runner/test_damage.py tests everything that can replace it."""
    (part,) = (room.target / "parts" / "staging.seen").rglob("*.parquet")
    part.unlink()
    os.mkfifo(part)
    said = room.tiny.build()
    assert said.status == 0, said.err
    assert part.is_file()
    assert "is damaged" in said.err_text


@pytest.mark.parametrize("case", FILES)
def test_a_hostile_data_file_has_no_effect(room: Room, case: str) -> None:
    name, put = FILES[case]
    path = room.tiny.data / "c" / "trafficinfo" / "2024052400" / "x" / name
    if name.startswith(("util_pkl", "taskinfo", "b.xlsx")):
        path = room.tiny.data / "c" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    put(room, path)
    before = room.outside()
    for said in (room.tiny.build(), room.run("doctor", "--all", "-d", room.tiny.data, "-t", room.target)):
        is_quiet(said)
        if said.status:
            is_one_sentence(said)
    is_as_before(room, before)
    assert not list(room.base.rglob("pwned*"))
    with_secret = room.sql("SELECT * FROM staging.seen", "--format", "table")
    is_quiet(with_secret)
    assert not room.tiny.ask("SELECT path FROM staging.seen WHERE value IS NOT NULL OR access IS NOT NULL")


def tar(*members: tuple[str, bytes, bytes, str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, kind, inside, link in members:
            one = tarfile.TarInfo(name)
            one.type, one.size, one.linkname = kind, len(inside), link
            archive.addfile(one, io.BytesIO(inside))
    return content.getvalue()


ARCHIVES: dict[str, tuple[str, bytes]] = {
    "a way up": ("r.zip", workbook({"../../pwned": b"x"})),
    "a way up in the middle": ("r.zip", workbook({"c/../../../pwned": b"x"})),
    "an absolute name": ("r.zip", workbook({"/tmp/pwned": b"x"})),
    "a drive": ("r.zip", workbook({"C:\\pwned": b"x"})),
    "a link out": ("r.tar.gz", tar(("c/x", tarfile.SYMTYPE, b"", "/etc/passwd"))),
    "a link, then through it": (
        "r.tar.gz", tar(("c", tarfile.SYMTYPE, b"", "/tmp"), ("c/pwned", tarfile.REGTYPE, b"x", "")),
    ),
    "a hard link": ("r.tar.gz", tar(("c/x", tarfile.LNKTYPE, b"", "../../secret.csv"))),
    "a device": ("r.tar.gz", tar(("c/x", tarfile.CHRTYPE, b"", ""))),
    "a pipe": ("r.tar.gz", tar(("c/x", tarfile.FIFOTYPE, b"", ""))),
    "one name twice": ("r.tar.gz", tar(("c/x", tarfile.REGTYPE, b"1", ""), ("c/x", tarfile.REGTYPE, b"2", ""))),
    "a name with control characters": ("r.tar.gz", tar(("c/\x1b[2J", tarfile.SYMTYPE, b"", "x"))),
    "cut short": ("r.tar.gz", tar(("c/x", tarfile.REGTYPE, b"1" * 9999, ""))[:-40]),
    "none": ("r.tar.gz", b"no archive"),
}  # fmt: skip


@pytest.mark.parametrize("case", ARCHIVES)
def test_an_archive_writes_nothing_outside(room: Room, case: str) -> None:
    name, content = ARCHIVES[case]
    archive = room.base / name
    archive.write_bytes(content)
    before, parts = room.outside(), room.parts()
    is_one_sentence(room.run("build", "-d", archive, "-t", room.target))
    is_as_before(room, before, parts)
    assert not list(room.base.rglob("pwned*"))
    assert not Path("/tmp/pwned").exists()


# the last good build ------------------------------------------------------------------------------


def test_the_number_of_hostile_inputs() -> None:
    assert len([*SQL, *NAMES, *MODELS, *FILES, *ARCHIVES]) >= 100


def test_a_cell_cannot_move_the_cursor(shared: Room) -> None:
    is_quiet(shared.sql("SELECT chr(27) || '[2J' AS x, chr(7) AS y", "--format", "table"))


def test_the_last_build_survives_a_failed_build(room: Room) -> None:
    before = room.parts()
    room.tiny.model("metrics.total", "SELECT 1 / 0 AS", {"name": "VARCHAR"})
    assert room.tiny.build().status == 1
    assert room.parts() == before
    assert room.tiny.ask("FROM metrics.total") == room.rows


def _pages() -> Iterator[str]:
    yield from (Path(__file__).parents[1] / "SECURITY.md").read_text(encoding="utf-8").split("\n## ")


def test_every_guarantee_has_tests() -> None:
    """Check PROMISES: a guarantee of SECURITY.md is a paragraph that begins in bold, with tests named there."""
    promised = next(page for page in _pages() if page.startswith("What is promised"))
    assert {line.split("**")[1] for line in promised.splitlines() if line.startswith("**")} == set(PROMISES)
    for names in PROMISES.values():
        assert all(name in globals() for name in names)


PROMISES = {
    "Queries only read.": [
        "test_a_query_only_reads_inside_the_warehouse",
        "test_a_name_is_not_parsed_as_sql_or_a_path",
    ],
    "Queries see few folders.": [
        "test_a_query_only_reads_inside_the_warehouse",
        "test_a_value_of_a_named_query_is_not_parsed_as_sql",
    ],
    "Queries can be bounded.": ["test_a_query_has_a_time_and_memory_limit"],
    "Damage is not served.": ["test_a_damaged_part_is_rebuilt"],
    "Links stay inside.": ["test_a_hostile_data_file_has_no_effect"],
    "Builds run no code but the project's.": [
        "test_a_project_file_runs_only_its_select",
        "test_a_hostile_data_file_has_no_effect",
    ],
    "Downloads are not trusted.": ["test_a_hostile_data_file_has_no_effect", "test_an_archive_writes_nothing_outside"],
    "A terminal gets no control characters.": [
        "test_a_cell_cannot_move_the_cursor",
        "test_a_hostile_data_file_has_no_effect",
    ],
    "Publishing is atomic.": ["test_the_last_build_survives_a_failed_build"],
}
