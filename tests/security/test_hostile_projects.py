"""Models, front matter, macros and tests of models run their SELECT and nothing else."""

from __future__ import annotations

from tests.security.room import Room, is_as_before, is_one_sentence


def laughs() -> str:
    """Return nine lines of YAML aliases that expand to a billion values."""
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines)


MODEL = "models/metrics/evil.sql"
HEAD = "about: A model.\ngrain: [a]\ncolumns:\n  a: BIGINT"
GOES_ON = "a) IS NOT TRUE) FROM metrics.evil; COPY (SELECT 1) TO '{base}/pwned'; SELECT count(*) FILTER (WHERE (1"
GIVEN = "x:\n  given:\n    staging.ports: |\n      port, speed\n      a, (SELECT 1)\n  expect: |\n    speed\n    1\n"
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
    "a key of none": (MODEL, f"{HEAD}\nkernel: os", "SELECT 1 AS a"),
    "the way out of the sandbox": (MODEL, HEAD, "SELECT {{ ''.__class__.__mro__[1].__subclasses__() }} AS a"),
    "a method of a text": (MODEL, HEAD, "SELECT {{ ''.format.__globals__ }} AS a"),
    "Jinja's globals": (MODEL, HEAD, "SELECT {{ cycler.__init__.__globals__.os.system('touch pwned') }} AS a"),
    "an include": (MODEL, HEAD, "SELECT {% include '/etc/passwd' %} AS a"),
    "an import": (MODEL, HEAD, "SELECT {% import 'os' as os %}1 AS a"),
    "a power": (MODEL, HEAD, "SELECT {{ 9 ** 9 ** 9 }} AS a"),
    "a long text": (MODEL, HEAD, "SELECT {{ 'x' * 9999999999 }} AS a"),
    "several lines": (MODEL, HEAD, "SELECT {{ '1\\n2' }} AS a"),
    "a macro file": ("sql/macros/evil.sql", None, "{{ self.__init__.__globals__ }}{% macro f() %}{% endmacro %}"),
    "a test that reads": ("models/metrics/total.test.yaml", None, GIVEN),
}  # fmt: skip


def test_a_project_file_runs_only_its_select(room: Room) -> None:
    parts = room.parts()
    for case, (name, head, body) in MODELS.items():
        text = body if head is None else f"/* ---\n{head}\n--- */\n{body}\n"
        written = [room.tiny.write(name, text.replace("{base}", str(room.base)).replace("{secret}", str(room.secret)))]
        if name.startswith("sql/macros"):
            written.append(room.tiny.write(MODEL, f"/* ---\n{HEAD}\n--- */\nSELECT {{{{ f() }}}} AS a\n"))
        before = room.outside()
        is_one_sentence(room.run("test") if name.endswith(".yaml") else room.tiny.build(), case)
        is_as_before(room, before, parts)
        for path in written:
            path.unlink()


def test_the_last_build_survives_a_failed_build(room: Room) -> None:
    before = room.parts()
    room.tiny.model("metrics.total", "SELECT 1 / 0 AS", {"name": "VARCHAR"})
    assert room.tiny.build().status == 1
    assert room.parts() == before
    assert room.tiny.ask("FROM metrics.total") == room.rows
