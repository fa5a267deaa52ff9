"""YAML reader for values as plain text with their places, and the forms that the values of a file must have.

Each file that people write as YAML has a table of its keys: `"about!": TEXT` for a key that is needed, `[TEXT]` for a
list, a dictionary for keys below, a `Form` as a key for keys of any name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from warehouse.base.errors import ModelError, Place, nearest_hint

if TYPE_CHECKING:
    import yaml


class Value(NamedTuple):
    """YAML node as plain text, with its place."""

    content: str | Sequence[Value] | Mapping[str, Value]
    line: int
    column: int

    def place(self, shown: str) -> Place:
        """Return the place in the file."""
        return Place(shown, self.line, self.column)


class Form(NamedTuple):
    """Texts that are valid."""

    pattern: str
    what: str
    """Description for the error about another text."""


def one_of(*names: str) -> Form:
    """Return the form of a text that is one of these."""
    return Form("|".join(names), f"one of {', '.join(names)}")


TEXT = Form(r".*\S.*", "a text")
NAME = Form(r"[a-z][a-z0-9_]*", "lower case letters, digits and _")


def one_line(text: str) -> str:
    """Return a text of several lines as one."""
    return " ".join(text.split())


def checked(value: Value, form: Any, what: str, shown: str) -> Any:
    """Return a value as plain texts, lists and dictionaries; as it is if there is no form.

    Raises
    ------
    ModelError
        With the place of a value that does not have the form.
    """
    content, place = value.content, value.place(shown)
    if form is None:
        return value
    if isinstance(form, list):
        items = content if isinstance(content, list) else [value] if content else []
        return [checked(one, form[0], what, shown) for one in items]
    if isinstance(form, Form):
        if not isinstance(content, str) or not re.fullmatch(form.pattern, content, re.DOTALL):
            raise ModelError(f"{what} is not {form.what}", place=place)
        return content
    if not isinstance(content, Mapping):
        raise ModelError(f"{what} is not a list of `key: value`", place=place)
    forms = {key.removesuffix("!"): below for key, below in form.items() if isinstance(key, str)}
    others = [(key, below) for key, below in form.items() if isinstance(key, Form)]
    for key, below in content.items():
        if key not in forms and not any(re.fullmatch(one.pattern, key, re.DOTALL) for one, _ in others):
            hint = f"it is {others[0][0].what}" if others else nearest_hint(key, forms) or f"it has {', '.join(forms)}"
            raise ModelError(f"unknown key `{key}` in {what}", place=below.place(shown), hint=hint)
    needed = (key[:-1] for key in form if key[-1] == "!")
    if missing := [key for key in needed if key not in content or not content[key].content]:
        raise ModelError(f"{what} has no `{missing[0]}`", place=place)
    return {
        key: checked(below, forms.get(key, others and others[0][1]), f"`{key}`", shown)
        for key, below in content.items()
    }


def keys_of(value: Value | None) -> Mapping[str, Value]:
    """Return the keys of a value that is a mapping; none without a value."""
    return value.content if value is not None and isinstance(value.content, Mapping) else {}


def read_yaml_file(path: Path, shown: str, what: str) -> dict[str, Value]:
    """Return the top-level keys of a YAML file. Raises ModelError if it is not UTF-8, or not valid YAML."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 text") from error
    return read_yaml(text, shown, what)


def read_yaml(text: str, shown: str, what: str) -> dict[str, Value]:
    """Return the top-level keys of a YAML text; all values are plain text.

    Raises
    ------
    ModelError
        With the place of invalid YAML or of a duplicate key. `what` names the text in the message.
    """
    import yaml  # slow to import

    # BaseLoader leaves `no` and `1e3` texts; its form in C is missing where PyYAML was built without libyaml.
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        node = yaml.compose(text, Loader=loader)  # not load(), whose values have no places
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
        return dict(keys_of(_value(node, {}, shown, what)))
    except RecursionError as error:  # an alias refers to a node that contains it
        raise ModelError(f"{what} contains itself", place=Place(shown, 1)) from error


def _value(node: yaml.Node, known: dict[int, Any], shown: str, what: str, at: yaml.Mark | None = None) -> Value:
    """Return a node; `known` has the contents of others: ten lines of aliases can name a billion of them."""
    import yaml

    mark = at or node.start_mark
    if id(node) not in known:
        if isinstance(node, yaml.MappingNode):
            content: dict[str, Value] = {}
            for key, one in node.value:
                name, place = str(key.value), Place(shown, key.start_mark.line + 1, key.start_mark.column + 1)
                if name in content:
                    raise ModelError(f"`{name}` stands twice in {what}", place=place)
                content[name] = _value(one, known, shown, what, key.start_mark)
            known[id(node)] = content
        else:
            is_list = isinstance(node, yaml.SequenceNode)
            known[id(node)] = [_value(one, known, shown, what) for one in node.value] if is_list else node.value
    return Value(known[id(node)], mark.line + 1, mark.column + 1)
