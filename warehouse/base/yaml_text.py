"""YAML reader for values as plain text with their places. Imported on demand: the parser is slow to import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import yaml

from warehouse.base.errors import ModelError, Place

LONGEST_YAML = 100_000


class Value(NamedTuple):
    """YAML node as plain text, with its place."""

    content: str | Sequence[Value] | Mapping[str, Value]
    line: int
    column: int

    def place(self, shown: str) -> Place:
        """Return the place in the file."""
        return Place(shown, self.line, self.column)


def read_yaml(text: str, shown: str, what: str) -> dict[str, Value]:
    """Return the top-level keys of a YAML text; all values are plain text.

    Raises
    ------
    ModelError
        With the place of invalid YAML or of a duplicate key. `what` names the text in the message.
    """
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = Place(shown, mark.line + 1, mark.column + 1) if mark else Place(shown, 1)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        is_colon = problem.startswith("mapping values are not allowed")
        hint = "a text that holds `: ` stands in quotes" if is_colon else None
        raise ModelError(f"{what} is not valid YAML: {problem}", place=place, hint=hint) from error
    if not isinstance(node, yaml.MappingNode):
        raise ModelError(f"{what} is not a list of `key: value` lines", place=Place(shown, 1))
    try:
        if _size(node, {}) > LONGEST_YAML:
            raise ModelError(f"{what} unfolds to more than {LONGEST_YAML:,} values", place=Place(shown, 1))
        value = _value(node, shown, what)
    except RecursionError as error:  # an alias refers to a node that contains it
        raise ModelError(f"{what} contains itself", place=Place(shown, 1)) from error
    assert isinstance(value.content, Mapping)
    return dict(value.content)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values with all aliases expanded: ten lines can expand to a billion."""
    if id(node) not in known:
        below: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            below = node.value
        elif isinstance(node, yaml.MappingNode):
            below = [value for _, value in node.value]
        known[id(node)] = 1 + sum(_size(one, known) for one in below)
    return known[id(node)]


def _value(node: yaml.Node, shown: str, what: str, at: yaml.Mark | None = None) -> Value:
    mark = at or node.start_mark
    line, column = mark.line + 1, mark.column + 1
    if isinstance(node, yaml.ScalarNode):
        return Value(node.value, line, column)
    if isinstance(node, yaml.SequenceNode):
        return Value([_value(item, shown, what) for item in node.value], line, column)
    assert isinstance(node, yaml.MappingNode)
    content: dict[str, Value] = {}
    for key, below in node.value:
        name = str(key.value)
        if name in content:
            raise ModelError(
                f"`{name}` stands twice in {what}",
                place=Place(shown, key.start_mark.line + 1, key.start_mark.column + 1),
            )
        content[name] = _value(below, shown, what, key.start_mark)
    return Value(content, line, column)
