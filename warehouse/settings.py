"""What a command was told: flags, then WAREHOUSE_* variables, then warehouse.toml, then defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warehouse.errors import Place, SettingsError, nearest_hint

CONFIG = "warehouse.toml"
DEFAULT_TARGET = Path("build/warehouse")
DEFAULT_MEMORY = "2GB"
KEYS = ("data", "target", "project", "threads", "memory", "cluster")
_MEMORY = re.compile(r"^(\d+(?:\.\d+)?)\s*(KB|MB|GB|TB|KiB|MiB|GiB|TiB)$")
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@dataclass(frozen=True)
class Settings:
    """The settled values."""

    data: tuple[Path, ...] = ()
    target: Path = DEFAULT_TARGET
    project: Path | None = None
    threads: int = 1
    memory: str = DEFAULT_MEMORY
    cluster: str | None = None

    @property
    def memory_bytes(self) -> int:
        """`memory` as a number of bytes."""
        return memory_bytes(self.memory)


def memory_bytes(text: str) -> int:
    """Bytes of `4GB`, `512MiB`.

    >>> memory_bytes("4GB")
    4000000000
    """
    match = _MEMORY.match(text.strip())
    if match is None:
        raise SettingsError(f"--memory {text!r} is not a size", hint="for instance 4GB or 512MiB")
    return int(float(match[1]) * _UNITS[match[2]])


def settle(flags: Mapping[str, object], *, folder: Path | None = None) -> Settings:
    """Settle flags, environment and warehouse.toml of the working folder.

    Parameters
    ----------
    flags
        Values given on the command line; None or absent where not given.
    folder
        Where warehouse.toml is looked for; the working folder.

    Raises
    ------
    SettingsError
        Naming the flag, variable or key.
    """
    folder = folder or Path.cwd()
    config = _read_config(folder / CONFIG)

    def value(key: str) -> tuple[object, str]:
        if flags.get(key) not in (None, [], ()):
            return flags[key], f"--{key}"
        variable = f"WAREHOUSE_{key.upper()}"
        if os.environ.get(variable):
            given = os.environ[variable]
            return (given.split(os.pathsep) if key == "data" else given), variable
        if key in config:
            found = config[key]
            if key in ("target", "project") and isinstance(found, str):
                return str(folder / found), CONFIG
            if key == "data":
                items = [found] if isinstance(found, str) else found
                if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
                    raise SettingsError("`data` is a folder or a list of folders", place=Place(CONFIG))
                return [str(folder / item) for item in items], CONFIG
            return found, CONFIG
        return None, ""

    data, _ = value("data")
    target, _ = value("target")
    project, _ = value("project")
    cluster, _ = value("cluster")
    memory, _ = value("memory")
    memory_bytes(str(memory or DEFAULT_MEMORY))
    return Settings(
        data=tuple(Path(str(item)) for item in (data if isinstance(data, (list, tuple)) else [data]) if item),
        target=Path(str(target)) if target else DEFAULT_TARGET,
        project=Path(str(project)) if project else (folder if _is_project(folder) else None),
        threads=_threads(*value("threads")),
        memory=str(memory or DEFAULT_MEMORY),
        cluster=str(cluster) if cluster else None,
    )


def _threads(value: object, source: str) -> int:
    if value is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        threads = int(str(value))
    except ValueError:
        threads = 0
    if not 1 <= threads <= 1024:
        raise SettingsError(f"{source} {value!r} is not a number of threads between 1 and 1024")
    return threads


def _is_project(folder: Path) -> bool:
    """Whether the working folder is a project of a user's: a warehouse.toml beside models/."""
    return (folder / CONFIG).is_file() and (folder / "models").is_dir()


def _read_config(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    import tomllib

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"not valid TOML: {error}", place=Place(path)) from error
    for key in values:
        if key not in KEYS:
            hint = nearest_hint(key, KEYS) or f"known keys: {', '.join(KEYS)}"
            raise SettingsError(f"unknown key `{key}`", place=Place(path), hint=hint)
    return values
