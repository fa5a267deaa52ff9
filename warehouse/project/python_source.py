"""Source of a Python model: front matter and code."""

from __future__ import annotations

import ast

from warehouse.base.errors import ModelError, Place

_MARK = "---"


def split(content: str, shown: str) -> tuple[str, str]:
    """Return the YAML text, and the source with newlines in place of the docstring. Both keep the line numbers.

    Raises
    ------
    ModelError
        When the file does not parse, or its docstring is not a front matter.
    """
    tree = parse_source(content, shown)
    first = tree.body[0] if tree.body else None
    docstring = first.value if isinstance(first, ast.Expr) else None
    text = docstring.value if isinstance(docstring, ast.Constant) else None
    if docstring is None or not isinstance(text, str) or not text.startswith(_MARK):
        raise ModelError('a Python model starts with its front matter: `"""---`', place=Place(shown, 1, 1))
    if not text.rstrip().endswith(f"\n{_MARK}"):
        raise ModelError('the front matter has no end: `---"""` is missing', place=Place(shown, docstring.end_lineno))
    header = "\n" * (docstring.lineno - 1) + text.rstrip()[len(_MARK) : -len(_MARK)]
    lines = content.split("\n")
    end = docstring.end_lineno or 1
    return header, "\n".join([""] * end + lines[end:])


def parse_source(content: str, shown: str) -> ast.Module:
    """Parse the source of a Python model. Raises ModelError with the invalid line."""
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
        message = getattr(error, "msg", None) or str(error)
        raise ModelError(f"it does not parse: {message}", place=Place(shown, line, column)) from error
