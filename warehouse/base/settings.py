"""Settings of a command, in order of precedence: options, WAREHOUSE_* variables, warehouse.toml, defaults.

Also the folder of the files that ship with the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from warehouse.base.errors import Place, SettingsError, nearest_hint
from warehouse.base.startup import regex

CONFIG = "warehouse.toml"
DEFAULT_TARGET = Path("build/warehouse")
KEPT_BUILDS = 3
"""Default number of builds to keep."""
SHIPPED = "shipped"
"""Key of a project's warehouse.toml: `shipped = false` excludes the shipped models."""
_MEMORY = regex(r"^(\d+(?:\.\d+)?)\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)$")
_LONGEST_CONFIG = 1_000_000
_NESTED = regex(r"(?<![\w-])(?:[\w-]++\s*+\.\s*+){64}")
"""Key with 64 nested levels, which would take the TOML parser minutes."""
_UNITS = {
    **{f"{sign}B": 1000**power for power, sign in enumerate("KMGT", 1)},
    **{f"{sign}iB": 1024**power for power, sign in enumerate("KMGT", 1)},
}


class Settings(NamedTuple):
    """Resolved settings."""

    data: tuple[Path, ...] = ()
    target: Path = DEFAULT_TARGET
    project: Path | None = None
    threads: int = 1
    memory: str = "3GB"
    """By default enough to sort an hour of 24 switches in memory. With less, the sort spills to files in the target."""
    cluster: str | None = None
    max_rejected: float = 0.01
    """Maximum share of unreadable rows in a job file."""
    follow_links: bool = False
    """True to follow links that lead out of the data folders."""

    @property
    def memory_bytes(self) -> int:
        """Memory limit in bytes."""
        return memory_bytes(self.memory)


def memory_bytes(text: str, source: str = "--memory") -> int:
    """Return the bytes of a size such as `4GB` or `512MiB`. Raises SettingsError.

    >>> memory_bytes("4GB")
    4000000000
    """
    match = _MEMORY.match(text.strip())
    if match is None:
        raise SettingsError(f"{source} is {text!r}, not a size", hint="for instance 4GB or 512MiB")
    return int(float(match[1]) * _UNITS[match[2]])


def settle(flags: Mapping[str, object], *, folder: Path | None = None) -> Settings:
    """Resolve options, environment and warehouse.toml.

    Parameters
    ----------
    flags
        Values of command line options; None or absent if not given.
    folder
        The folder of warehouse.toml; default: the working folder.

    Raises
    ------
    SettingsError
        With the name of the option, variable or key.
    """
    folder = folder or Path.cwd()
    config = _read_config(folder / CONFIG)
    found = {key: parse(*_given(key, flags, config)) for key, parse in _PARSERS.items()}
    # Without models/, warehouse.toml only has options for the shipped models.
    if found["project"] is None and (folder / CONFIG).is_file() and (folder / "models").is_dir():
        found["project"] = folder
    return Settings(**{key: value for key, value in found.items() if value is not None})


def usual_target() -> Path:
    """Return the target of a command without `--target`, in the working folder."""
    try:
        return settle({}).target
    except SettingsError:  # the command that needs the setting reports it
        return DEFAULT_TARGET


def _given(key: str, flags: Mapping[str, object], config: Mapping[str, object]) -> tuple[object, str]:
    """Return a setting as given, with its source."""
    if flags.get(key) not in (None, [], ()):
        return flags[key], f"--{key.replace('_', '-')}"
    variable = f"WAREHOUSE_{key.upper()}"
    if given := os.environ.get(variable):  # an empty variable counts as unset, as in a shell
        return ([item for item in given.split(os.pathsep) if item] if key == "data" else given), variable
    return config.get(key), f"`{key}` in {CONFIG}"


def _text(value: object, source: str) -> str | None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise SettingsError(f"{source} is {value!r}, where a text is expected")
    return value


def _path(value: object, source: str) -> Path | None:
    text = _text(value, source)
    return Path(text) if text else None


def _folders(value: object, source: str) -> tuple[Path, ...]:
    items = [value] if isinstance(value, str) else value or []
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in items):
        raise SettingsError(f"{source} is {value!r}, where a folder or several are expected")
    return tuple(map(Path, items))


def _size(value: object, source: str) -> str | None:
    text = _text(value, source)
    if text is not None:
        memory_bytes(text, source)
    return text


def _threads(value: object, source: str) -> int:
    if value is None:
        # A batch job may have fewer cores than its machine; macOS does not tell.
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = str(value)
    if not (text.isdecimal() and 1 <= int(text) <= 1024):
        raise SettingsError(f"{source} is {value!r}, not a number of threads between 1 and 1024")
    return int(text)


def _share(value: object, source: str) -> float | None:
    """Return a share such as 0.01 or 1% as a number."""
    if value is None:
        return None
    written = str(value).strip()
    try:
        share = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise SettingsError(f"{source} is {value!r}, not a share between 0 and 1", hint="for instance 0.01 or 1%")
    return share


def _switch(value: object, source: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False, "none": False}
    if str(value).lower() not in known:
        raise SettingsError(f"{source} is {value!r}, where true or false is expected")
    return known[str(value).lower()]


_PARSERS: Mapping[str, Callable[[object, str], Any]] = {
    "data": _folders, "target": _path, "project": _path, "threads": _threads, "memory": _size, "cluster": _text,
    "max_rejected": _share, "follow_links": _switch,
}  # fmt: skip
KEYS = tuple(_PARSERS)


def is_standalone(project: Path) -> bool:
    """Return True if a project's warehouse.toml excludes the shipped models.

    Raises
    ------
    SettingsError
        When the key is neither true nor false.
    """
    shipped = _read_config(project / CONFIG).get(SHIPPED, True)
    if not isinstance(shipped, bool):
        raise SettingsError(
            f"`{SHIPPED}` is {shipped!r}, where true or false is expected", place=Place(project / CONFIG)
        )
    return not shipped


def shipped_root() -> Path:
    """Return the folder with the shipped models/, sql/ and data/: in the package or in the checkout around it."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "shipped"
    return inside if inside.is_dir() else package.parent


def _read_config(path: Path) -> dict[str, object]:
    if not path.is_file():
        if path.exists():
            raise SettingsError("not a file", place=Place(path))
        return {}
    import tomllib

    try:
        if path.stat().st_size > _LONGEST_CONFIG:  # before the file is read into memory
            raise SettingsError(f"larger than {_LONGEST_CONFIG:,} bytes", place=Place(path))
        text = path.read_text(encoding="utf-8")
        if _NESTED.search(text):
            raise SettingsError("not valid TOML: nested too deeply", place=Place(path))
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"not valid TOML: {error}", place=Place(path)) from error
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", place=Place(path)) from error
    known = (*KEYS, SHIPPED)
    for key in values:
        if key not in known:
            hint = nearest_hint(key, known) or f"known keys: {', '.join(known)}"
            raise SettingsError(f"unknown key `{key}`", place=Place(path), hint=hint)
    return {
        key: _from(path.parent, value) if key in ("data", "target", "project") else value
        for key, value in values.items()
    }


def _from(folder: Path, value: object) -> object:
    """Return a path of warehouse.toml joined to its folder; other values unchanged, for a later check to refuse."""
    if isinstance(value, list):
        return [_from(folder, item) for item in value]
    return str(folder / value) if isinstance(value, str) and value else value
