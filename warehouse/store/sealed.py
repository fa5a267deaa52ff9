"""JSON files with a hash of their content: a damaged one is not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from warehouse.base import hashing
from warehouse.store.signatures import read_text

_BEGIN, _BETWEEN, _END = '{"hash":"', '","content":', "}\n"


def write_sealed(path: Path, content: object) -> None:
    """Write a JSON-able value with its hash."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    path.write_text(f"{_BEGIN}{hashing.of_bytes(text.encode())}{_BETWEEN}{text}{_END}", encoding="utf-8")


def read_sealed(path: Path) -> Any:
    """Return the value. Raises OSError, or ValueError if the file is damaged."""
    text = read_text(path)
    head, between, rest = text.partition(_BETWEEN)
    content = rest.removesuffix(_END)
    if not between or content == rest or head != f"{_BEGIN}{hashing.of_bytes(content.encode())}":
        raise ValueError(f"{path} is damaged")
    return json.loads(content)
