"""Settings of a command, in order of precedence: options, WAREHOUSE_* variables, warehouse.toml, defaults."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from warehouse.base.errors import Place, SettingsError, nearest_hint
from warehouse.base.startup import regex

CONFIG = "warehouse.toml"
DEFAULT_TARGET = Path("build/warehouse")
DEFAULT_MEMORY = "3GB"
"""Enough to sort an hour of 24 switches in memory. With less, the sort spills to files in the target."""
DEFAULT_MAX_REJECTED = 0.01
KEYS = (
    "data", "target", "project", "threads", "memory", "cluster", "max_rejected", "follow_links",
    "keep_hours",
)  # fmt: skip
SHIPPED = "shipped"
"""Key of a project's warehouse.toml: `shipped = false` excludes the shipped models."""
_ENGINE = "engine"
"""Key of earlier releases, accepted for one more release."""
_PATHS = ("data", "target", "project")
_MEMORY = regex(r"^(\d+(?:\.\d+)?)\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)$")
_KEEP_HOURS = regex(r"^(?:[1-9]\d{0,6}|\d{4}-\d\d-\d\d(?:T\d\d)?)$")
_LONGEST_CONFIG = 1_000_000
_NESTED = regex(r"(?<![\w-])(?:[\w-]++\s*+\.\s*+){64}")
"""Key with 64 nested levels, which would take the TOML parser minutes."""
_UNITS = {
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


class Settings(NamedTuple):
    """Resolved settings."""

    data: tuple[Path, ...] = ()
    target: Path = DEFAULT_TARGET
    project: Path | None = None
    threads: int = 1
    memory: str = DEFAULT_MEMORY
    cluster: str | None = None
    max_rejected: float = DEFAULT_MAX_REJECTED
    """Maximum share of unreadable rows in a job file."""
    follow_links: bool = False
    """True to follow links that lead out of the data folders."""
    keep_hours: str | None = None
    """Number of newest hours whose detail is kept, or the first such day or hour, `2024-05-23` or `2024-05-23T16`."""

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

    def value(key: str) -> tuple[object, str]:
        """Return a setting as given, with its source."""
        if flags.get(key) not in (None, [], ()):
            return flags[key], f"--{key.replace('_', '-')}"
        variable = f"WAREHOUSE_{key.upper()}"
        if os.environ.get(variable):
            given = os.environ[variable]
            return ([item for item in given.split(os.pathsep) if item] if key == "data" else given), variable
        return config.get(key), f"`{key}` in {CONFIG}"

    def text(key: str) -> str | None:
        found, source = value(key)
        if found is not None and (not isinstance(found, str) or not found.strip()):
            raise SettingsError(f"{source} is {found!r}, where a text is expected")
        return found

    data, data_source = value("data")
    items = [data] if isinstance(data, str) else data or []
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in items):
        raise SettingsError(f"{data_source} is {data!r}, where a folder or several are expected")
    threads, threads_source = value("threads")
    memory = text("memory") or DEFAULT_MEMORY
    memory_bytes(memory, value("memory")[1])
    target, project = text("target"), text("project")
    _check_engine(*value(_ENGINE))
    return Settings(
        data=tuple(Path(item) for item in items),
        target=Path(target) if target else DEFAULT_TARGET,
        project=Path(project) if project else (folder if _is_project(folder) else None),
        threads=_threads(threads, threads_source),
        memory=memory,
        cluster=text("cluster"),
        max_rejected=_share(*value("max_rejected")),
        follow_links=_switch(*value("follow_links")),
        keep_hours=_keep_hours(*value("keep_hours")),
    )


def usual_target() -> Path:
    """Return the target of a command without `--target`, in the working folder."""
    given = os.environ.get("WAREHOUSE_TARGET") or _read_config(Path.cwd() / CONFIG).get("target")
    return Path(given) if isinstance(given, str) else DEFAULT_TARGET


def _check_engine(name: object, source: str) -> None:
    """Warn about the obsolete key if it is DuckDB; refuse any other engine."""
    if name == "duckdb":
        warnings.warn(f"{source} has no effect: DuckDB is the only engine; remove it", FutureWarning, stacklevel=3)
    elif name is not None:
        raise SettingsError(f"{source} is {name!r}, but DuckDB is the only engine", hint="remove it")


def _threads(value: object, source: str) -> int:
    if value is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        threads = int(str(value))
    except ValueError:
        threads = 0
    if not 1 <= threads <= 1024:
        raise SettingsError(f"{source} is {value!r}, not a number of threads between 1 and 1024")
    return threads


def _share(value: object, source: str) -> float:
    """Return a share such as 0.01 or 1% as a number."""
    if value is None:
        return DEFAULT_MAX_REJECTED
    written = str(value).strip()
    try:
        share = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise SettingsError(f"{source} is {value!r}, not a share between 0 and 1", hint="for instance 0.01 or 1%")
    return share


def _keep_hours(value: object, source: str) -> str | None:
    if value is None or (_KEEP_HOURS.match(str(value)) and _is_number_or_date(str(value))):
        return None if value is None else str(value)
    raise SettingsError(
        f"{source} is {value!r}, not a number of hours or a date",
        hint="for instance 168, 2024-05-23 or 2024-05-23T16 (UTC)",
    )


def _is_number_or_date(text: str) -> bool:
    """Return True unless a date, `2024-05-23` or `2024-05-23T16`, is not in the calendar."""
    from datetime import datetime  # not needed without the option

    try:
        return text.isdigit() or bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _switch(value: object, source: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False, "none": False}
    if str(value).lower() not in known:
        raise SettingsError(f"{source} is {value!r}, where true or false is expected")
    return known[str(value).lower()]


def _is_project(folder: Path) -> bool:
    """Return True if a folder is a user's project: it contains warehouse.toml and models/."""
    return (folder / CONFIG).is_file() and (folder / "models").is_dir()


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


def _read_config(path: Path) -> dict[str, object]:
    if not path.is_file():
        if path.exists():
            raise SettingsError("not a file", place=Place(path))
        return {}
    import tomllib

    try:
        if path.stat().st_size > _LONGEST_CONFIG:
            raise SettingsError(f"larger than {_LONGEST_CONFIG:,} bytes", place=Place(path))
        text = path.read_text(encoding="utf-8")
        is_nested = _NESTED.search(text) is not None
        values = {} if is_nested else tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"not valid TOML: {error}", place=Place(path)) from error
    except RecursionError:
        is_nested = True
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", place=Place(path)) from error
    if is_nested:
        raise SettingsError("nested too deeply", place=Place(path))
    for key in values:
        if key not in (*KEYS, SHIPPED, _ENGINE):
            hint = nearest_hint(key, (*KEYS, SHIPPED)) or f"known keys: {', '.join((*KEYS, SHIPPED))}"
            raise SettingsError(f"unknown key `{key}`", place=Place(path), hint=hint)
    return {key: _from(path.parent, value) if key in _PATHS else value for key, value in values.items()}


def _from(folder: Path, value: object) -> object:
    """Return a path of warehouse.toml joined to its folder; other values unchanged, for a later check to refuse."""
    if isinstance(value, list):
        return [_from(folder, item) for item in value]
    return str(folder / value) if isinstance(value, str) and value else value
