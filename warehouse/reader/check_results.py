"""Check results of a table: from this build, and from a failed build."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from warehouse.base.text import wrapped
from warehouse.reader import value_text

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.reader.relation import Relation

SHOWN_ROWS = 3
_COLUMNS = {"status": "text", "failures": "number", "check": "text"}


def stopped(target: Path, name: str) -> str | None:
    """Return the check of a table at which the last build ended, if it did."""
    from warehouse.store.state import FAILED, NAME, DamagedStateError, State

    try:
        state = State(target / NAME)
    except DamagedStateError:
        return None
    last = state.get(FAILED, "")
    state.close()
    if last is None or last["model"] != name:
        return None
    where = f" in {last['partition']}" if last["partition"] else ""
    return f"{last['place']}: {last['check']}{where}: {int(last['failures']):,} rows, {last['at_utc']} UTC"


def print_results(relation: Relation, stream: TextIO, width: int | None) -> None:
    """Print the checks of a table with their earlier results and the first failing rows."""
    from warehouse.reader.text_table import escape, print_rows, width_of

    wide = width_of(stream, width)
    if relation.stopped:
        stream.write("\n")
        stream.writelines(wrapped(f"the last build ended here: {escape(relation.stopped)}", wide))
    if not relation.checks:
        return
    stream.write("\n")
    rows = [(check.status, f"{check.failures:,}", check.check) for check in relation.checks]
    columns = [value_text.Column(name, kind, "") for name, kind in _COLUMNS.items()]
    print_rows(columns, rows, stream, width=width)
    for check in relation.checks:
        for position, row in enumerate(check.rows[:SHOWN_ROWS]):
            if position == 0:
                stream.write("\n")
                stream.writelines(wrapped(f"fails {escape(check.check)}; meta.failures has more", wide))
            if check.sentences:
                stream.writelines(f"  {line}" for line in wrapped(escape(check.sentences[position]), wide - 2))
                continue
            text = ", ".join(f"{name} {value}" for name, value in json.loads(row).items() if value is not None)
            stream.writelines(f"  {line}" for line in wrapped(escape(text), wide - 2))
