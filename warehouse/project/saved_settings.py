"""Data folders and target saved in `warehouse.toml` by `warehouse build --save`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from warehouse.base.errors import Place, SettingsError
from warehouse.base.settings import CONFIG
from warehouse.store.atomic import replacing


def save(data: Sequence[str], target: str | None, folder: Path) -> Path:
    """Write the given values to the `warehouse.toml` of a folder; return its path.

    Other lines and comments of the file are kept.

    Raises
    ------
    SettingsError
        When no value is given, or the file cannot be written.
    """
    given = {"data": list(data), "target": target}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items() if value]
    if not lines:
        raise SettingsError("--save keeps --data and --target, and neither is given")
    path = folder / CONFIG
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in lines:
            key = line.partition(" ")[0]
            written = re.compile(rf"^{key}[ \t]*=[ \t]*(?:\[[^\]]*\]|\"[^\"\n]*\"|'[^'\n]*')", re.MULTILINE)
            found = written.search(text)
            text = f"{text[: found.start()]}{line}{text[found.end() :]}" if found else f"{line}\n{text}"
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise SettingsError(f"cannot be written: {why}", place=Place(path)) from error
    return path
