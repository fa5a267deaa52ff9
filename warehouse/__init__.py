"""A SQL warehouse for the public traces of GPU clusters that train large language models.

>>> import warehouse                                            # doctest: +SKIP
>>> warehouse.build("downloads/release")                        # doctest: +SKIP
>>> traces = warehouse.Warehouse()                              # doctest: +SKIP
>>> traces.query("nic", server="GPU-35").df()                   # doctest: +SKIP
>>> traces.table("metrics.leaf_hour").lineage("leaving_share")  # doctest: +SKIP

`Warehouse`, `build`, `open`, `query` and `WarehouseError` are public, and keep their names. All else may change with
any release.
"""

from __future__ import annotations

from warehouse.base.version import __version__

TYPE_CHECKING = False  # as type checkers see it: true; `typing` is a tenth of what a build with nothing to do costs
if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    import duckdb

    from warehouse.api.answer import Answer
    from warehouse.api.warehouse import Warehouse
    from warehouse.base.errors import WarehouseError
    from warehouse.runner.reporter import Result

__all__ = ["Warehouse", "WarehouseError", "__version__", "build", "open", "query"]


def __getattr__(name: str) -> object:
    """Load a class when it is first asked for."""
    if name == "Warehouse":
        from warehouse.api.warehouse import Warehouse

        return Warehouse
    if name == "WarehouseError":
        from warehouse.base.errors import WarehouseError

        return WarehouseError
    raise AttributeError(f"module 'warehouse' has no attribute {name!r}")


def open(target: str | Path | None = None, data: Sequence[str | Path] = ()) -> duckdb.DuckDBPyConnection:  # noqa: A001
    """Return a read-only DuckDB connection to the published warehouse in `target`.

    Parameters
    ----------
    target
        The folder that `warehouse build --target` wrote; by default that of the commands: WAREHOUSE_TARGET, `target`
        in warehouse.toml, else `build/warehouse`.
    data
        More data folders to allow, where the raw files have moved since the build.

    Raises
    ------
    WarehouseError
        When there is no warehouse in `target`, it was moved and reads its tables in another folder, or a part that
        its tables are read from is damaged. Damage that comes later, while the connection is open, is not seen.
    """
    from warehouse.api.warehouse import Warehouse
    from warehouse.base.errors import WarehouseError
    from warehouse.base.startup import complete
    from warehouse.reader.connection import refuse_damage

    complete()
    try:
        opened = Warehouse(target, data=data)
        try:
            refuse_damage(opened.settings.target)
        except BaseException:
            opened.close()
            raise
    except WarehouseError as error:
        raise error.with_traceback(None) from None  # its sentence says it; how the engine came to it does not help
    return opened.connection


def query(
    statement: str,
    target: str | Path | None = None,
    *,
    project: str | Path | None = None,
    data: Sequence[str | Path] = (),
    **parameters: object,
) -> Answer:
    """Return the answer to a named query (`warehouse sql --list`) or to one SELECT.

    Parameters
    ----------
    statement
        The name of a query, or SQL.
    target
        The folder that `warehouse build --target` wrote; by default that of `open`.
    project
        A folder with named queries of your own; by default that of the commands.
    data
        More data folders to allow, where the raw files have moved since the build.
    parameters
        Values of `$name` in the query.

    Returns
    -------
    Answer
        Rows in full precision, as `Warehouse.query` and `Warehouse.sql` return them.

    Raises
    ------
    WarehouseError
        When there is no warehouse in `target`, or the query is unknown, refused or wrong, or a named query finds no
        row because a parameter names a server, a switch, an hour or the like that is not loaded.
    """
    import re

    from warehouse.api.warehouse import Warehouse

    asked = Warehouse(target, project=project, data=data)
    is_name = re.fullmatch(r"[a-z][a-z0-9-]*", statement)
    return (asked.query if is_name else asked.sql)(statement, **parameters)


def build(
    data: str | Path | Sequence[str | Path],
    target: str | Path | None = None,
    *,
    project: str | Path | None = None,
    select: Sequence[str] = (),
    threads: int | None = None,
    memory: str | None = None,
    cluster: str | None = None,
    max_rejected: float | None = None,
    follow_links: bool | None = None,
    executor: Executor | None = None,
) -> Result:
    """Build and publish a warehouse, as `warehouse build` does, without a word on the terminal.

    Parameters
    ----------
    data
        One folder with raw files, or several.
    target
        The folder of the warehouse; by default that of the command.
    project
        A folder with models of your own.
    select
        Selectors of models (`metrics.port_hour`, `+metrics`, `*.port_*`); the others keep their last rows.
    threads, memory
        Limits of the engine (2, `"4GB"`).
    cluster
        The name of the cluster, where the folder does not say it.
    max_rejected
        The share of bad rows that a relation may have.
    follow_links
        Whether links out of the data folders are followed.
    executor
        Executor of `concurrent.futures` that makes the parts, such as that of a Dask client, whose workers see the same
        folders; by default threads of this machine.

    Returns
    -------
    Result
        The id of the build, its files, parts and checks.

    Raises
    ------
    WarehouseError
        With a sentence; the published warehouse is then as it was.
    """
    from warehouse.base.settings import settle
    from warehouse.runner.build import build as run_build
    from warehouse.runner.reporter import Reporter
    from warehouse.runner.session import BuildOptions

    folders = [data] if isinstance(data, str) or not hasattr(data, "__iter__") else list(data)
    settings = settle(
        {
            "data": [str(folder) for folder in folders],
            "target": target and str(target),
            "project": project and str(project),
            "threads": threads,
            "memory": memory,
            "cluster": cluster,
            "max_rejected": max_rejected,
            "follow_links": follow_links,
        }
    )
    return run_build(settings, Reporter(), BuildOptions(select=tuple(select), executor=executor))
