"""A SQL warehouse for the public traces of GPU clusters that train large language models.

>>> import warehouse                                    # doctest: +SKIP
>>> connection = warehouse.open("build/warehouse")      # doctest: +SKIP
>>> connection.sql("SELECT * FROM metrics.leaf_hour")   # doctest: +SKIP
"""

from __future__ import annotations

from warehouse.base.version import __version__

TYPE_CHECKING = False  # as type checkers see it: true; `typing` is a tenth of what a build with nothing to do costs
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

    from warehouse.runner.result import Result

__all__ = ["__version__", "build", "open"]


def open(target: str | Path = "build/warehouse", data: Sequence[str | Path] = ()) -> duckdb.DuckDBPyConnection:  # noqa: A001
    """A read-only DuckDB connection to the published warehouse in `target`.

    Parameters
    ----------
    target
        The folder that `warehouse build --target` wrote.
    data
        More data folders to allow, where the raw files have moved since the build.

    Raises
    ------
    warehouse.base.errors.QueryError
        When there is no warehouse in `target`, it was moved and reads its tables in another folder, or a part that
        its tables are read from is damaged. Damage that comes later, while the connection is open, is not seen.
    """
    import warnings
    from pathlib import Path

    from warehouse.base.errors import WarehouseError
    from warehouse.base.startup import complete
    from warehouse.reader.connection import connect
    from warehouse.reader.damaged_parts import refuse_damage

    complete()
    try:
        connection = connect(
            Path(target),
            [Path(folder) for folder in data],
            tell_moved=lambda said: warnings.warn(said, stacklevel=4),
        )
        try:
            refuse_damage(connection, Path(target))
        except BaseException:
            connection.close()
            raise
    except WarehouseError as error:
        raise error.with_traceback(None) from None  # its sentence says it; how the engine came to it does not help
    return connection


def build(
    data: str | Path | Sequence[str | Path],
    target: str | Path = "build/warehouse",
    *,
    project: str | Path | None = None,
    select: Sequence[str] = (),
    threads: int | None = None,
    memory: str | None = None,
    cluster: str | None = None,
    max_rejected: float | None = None,
    follow_links: bool | None = None,
) -> Result:
    """Build and publish a warehouse: what `warehouse build` does, without a word on the terminal.

    Raises
    ------
    warehouse.base.errors.WarehouseError
        With a sentence; the published warehouse is then as it was.
    """
    from warehouse.base.settings import settle
    from warehouse.runner.build import build as run_build
    from warehouse.runner.options import BuildOptions
    from warehouse.runner.reporter import Silent

    folders = [data] if isinstance(data, str) or not hasattr(data, "__iter__") else list(data)
    settings = settle(
        {
            "data": [str(folder) for folder in folders],
            "target": str(target),
            "project": str(project) if project else None,
            "threads": threads,
            "memory": memory,
            "cluster": cluster,
            "max_rejected": max_rejected,
            "follow_links": follow_links,
        }
    )
    return run_build(settings, Silent(), BuildOptions(select=tuple(select)))
