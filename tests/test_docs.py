"""Documents match the project: commands, links, pages, words. Named queries answer, and the site shows each of them."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import re
import shlex
from html import unescape
from pathlib import Path

import pytest
import yaml

import warehouse
from tests.conftest import answered
from warehouse.cli import parser
from warehouse.cli.commands import with_parameters
from warehouse.formats import base
from warehouse.project.project import Project
from warehouse.reader.finding import BELOW, QUESTIONS
from warehouse.reader.named_queries import load_queries

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RENDERED_LATER = {"bench/RESULTS.md"}
"""Written by a benchmark run on a quiet machine, but already linked."""

PARSER = parser()
[_GROUP] = [one for one in PARSER._actions if isinstance(one, argparse._SubParsersAction)]
COMMANDS: dict[str, argparse.ArgumentParser] = dict(_GROUP.choices)

EXAMPLES = {
    "nic": {"server": "GPU-1"},
    "server-peers": {"server": "GPU-1"},
    "leaf-uplinks": {"leaf": "Leaf-2"},
    "less-from-spine": {"spine": "spine-1"},
    "uplink-minutes": {"leaf": "Leaf-2"},
}
"""Parameters of the queries that require some."""


def _text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _blocks(page: Path) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", _text(page), re.MULTILINE | re.DOTALL)


def test_every_command_is_documented() -> None:
    everything = " ".join(map(_text, PAGES))
    assert [command for command in COMMANDS if not re.search(rf"\bwarehouse {command}\b", everything)] == []


def _examples() -> list[str]:
    """Return command lines in blocks, with continuation lines joined and without pipes."""
    found = []
    for page in PAGES:
        for block in _blocks(page):
            lines = re.findall(r'^(?:\$ )?(warehouse (?:[^"\n]|"[^"]*")*)$', block, re.MULTILINE)
            found += [f"{_name(page)}: {' '.join(line.split())}" for line in lines]
    return found


def test_every_documented_command_line_is_valid() -> None:
    for example in _examples():
        words = shlex.split(example.partition(": ")[2], comments=True)[1:]
        end = next((at for at, word in enumerate(words) if word in ("|", ">")), len(words))
        assert PARSER.parse_args(with_parameters(words[:end])).command, example


def test_every_relative_link_resolves() -> None:
    prose = {page: re.sub(r"^```.*?^```|`[^`\n]*`", "", _text(page), flags=re.MULTILINE | re.DOTALL) for page in PAGES}
    for page, link in ((page, link) for page, text in prose.items() for link in re.findall(r"\]\(([^)\s]+)\)", text)):
        path, _, place = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(ROOT), link
        assert target.exists() or _name(target) in RENDERED_LATER, link
        if place:
            headings = re.findall(r"^#+ (.+)$", _text(target), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert place in slugs, link


def test_modules_that_pages_name_exist() -> None:
    named = {
        (page, name) for page in PAGES for name in re.findall(r"`((?:warehouse|bench|tests)/[\w/]+\.py)`", _text(page))
    }
    steps = _text(ROOT / "docs" / "architecture.md").partition("## How a build runs")[2]
    named |= {(ROOT / "docs", f"warehouse/{name}") for name in re.findall(r"`([\w/]+\.py)`", steps)}
    assert len(named) > 20
    assert [(page.name, name) for page, name in named if not (ROOT / name).is_file()] == []


def test_tables_are_listed_by_the_questions_of_ls() -> None:
    page = _text(ROOT / "docs" / "tables.md")
    assert re.findall("^## (.+)$", page, re.MULTILINE) == [*[*QUESTIONS][:-1], BELOW]
    for name in Project.open().models:
        layer, _, table = name.partition(".")
        assert layer in ("staging", "reference") or f"`{table}`" in page or f"`{name}`" in page, name


def test_the_citation_file_is_valid_and_current() -> None:
    said = yaml.safe_load(_text(ROOT / "CITATION.cff"))

    assert said["cff-version"] == "1.2.0"
    assert all(isinstance(said[key], str) and said[key] for key in ("title", "message", "license", "type"))
    assert all(set(author) <= {"name"} or "family-names" in author for author in said["authors"])
    assert said["version"] == warehouse.__version__
    assert f"## [{warehouse.__version__}]" in _text(ROOT / "CHANGELOG.md")


def test_documents_name_no_local_paths() -> None:
    for page in PAGES:
        assert not re.search(r"/(?:home|work|root|tmp|Users)/", _text(page)), _name(page)


NAMED = load_queries([ROOT / "sql" / "queries"])
STABLE = ROOT / "tests" / "fixtures" / "named_queries.txt"
"""Parameters and columns of each named query: a change of these lines is a line of CHANGELOG."""


@pytest.fixture(scope="module")
def shown(site: Path) -> dict[str, str]:
    """Return the text of each named query on the site."""
    page = _text(site / "queries.html")
    parts = re.findall(r'<section>\s*<h3 id="([^"]+)">(.*?)</section>', page, re.DOTALL)
    return {name: unescape(" ".join(re.sub(r"<[^>]+>", "", part).split())) for name, part in parts}


@pytest.mark.parametrize("name", NAMED)
def test_every_named_query_answers_and_is_on_the_site(name: str, built: Path, shown: dict[str, str]) -> None:
    """The site has its description, its parameters, a command, and all columns of its answer."""
    query = NAMED[name]
    with contextlib.redirect_stderr(io.StringIO()):  # it says that there are no rows
        said = answered(built, query=query, parameters=EXAMPLES.get(name, {}), format="csv")
    columns, *rows = csv.reader(said.splitlines())
    stable = f"{name}({', '.join(query.parameters)}): {', '.join(columns)}"
    listed = STABLE.read_text(encoding="utf-8").splitlines()
    assert stable in listed
    assert {one.partition("(")[0] for one in listed} == NAMED.keys()

    said = shown[name]
    assert " ".join(query.about.replace("`", "").split()) in said
    for one in query.parameters.values():
        assert f"--{one.name.replace('_', '-')} {one.type}: {one.about.replace('`', '')}" in said
    assert f"$ warehouse sql -q {name}" in said
    assert "No answer" not in said
    assert ("No rows in this build" in said) == (not rows)
    assert not rows or all(column in said for column in columns)


def test_every_value_that_a_model_writes_is_in_its_contract_on_its_page_or_in_the_glossary() -> None:
    glossary = set(re.findall(r"`([^`\n]+)`", _text(ROOT / "docs" / "glossary.md")))
    word = r"'([a-z][a-z0-9_]*(?::[a-z_]+)?)'"
    for model in Project.open().models.values():
        written = re.findall(rf"\b(?:THEN|ELSE)\s+{word}|{word}\s+AS\s+\w", model.sql)
        for check in model.checks:
            for listed in re.findall(r"\w+ in \(([^)]*)\)", check.text, re.IGNORECASE):
                written += [(one, "") for one in re.findall(word, listed)]
        pages = [_text(ROOT / page) for page in re.findall(r"\bdocs/[\w/.-]+\.md\b", model.sources)]
        contract = " ".join([model.about, *(column.about for column in model.columns), *pages])
        missing = {first or second for first, second in written} - glossary - set(re.findall(r"[\w:]+", contract))
        assert not missing, f"{model.shown_path} writes {', '.join(sorted(missing))}"
    statuses = {base.READ, base.PARTIAL, base.SKIPPED, base.IGNORED, base.UNKNOWN}
    assert statuses | {"passed", "warned", "failed"} <= glossary
