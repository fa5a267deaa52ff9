"""Server connection: sign in, the publish lock, and table locks that never block readers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from warehouse.base.errors import QueryError
from warehouse.base.sql_text import identifier

try:
    import psycopg
    from psycopg import errors, sql
except ImportError as error:
    raise QueryError("publishing needs psycopg", hint="pip install 'gpu-warehouse[postgres]'") from error

ServerError = psycopg.Error
DependentsError = errors.DependentObjectsStillExist
UNCHANGED = "nothing that readers see was changed"
_LOCK = 0x77617265686F7573  # ASCII of "warehous"
"""Key of the advisory lock of a publish."""
_FIRST_PAUSE, _LONGEST_PAUSE, _TRIES_WITHOUT_WAITING = 0.005, 0.25, 3
_SETTINGS = (
    # A user's schema could otherwise shadow a function or operator.
    "SET search_path = pg_catalog",
    "SET TimeZone = 'UTC'",
    "SET default_transaction_isolation = 'read committed'",
    "SET default_transaction_read_only = off",
)


def open_server(url: str) -> Any:
    """Open a connection; the password comes from PGPASSWORD or ~/.pgpass.

    Raises
    ------
    QueryError
        When the URL holds a password, or the server refuses or is too old.
    """
    try:
        parameters = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        raise QueryError(
            f"not a PostgreSQL URL: {first_line(error)}", hint="postgresql://USER@HOST:PORT/NAME"
        ) from error
    if "password" in parameters:
        raise QueryError(
            "the URL holds a password, which would show in lists of processes",
            hint="put it into PGPASSWORD or ~/.pgpass, and leave it out of the URL",
        )
    try:
        # Autocommit: else the first SELECT begins a transaction that holds its locks until the end.
        server = psycopg.connect(url, application_name="warehouse publish", connect_timeout=10, autocommit=True)
    except psycopg.OperationalError as error:
        raise QueryError(f"the server does not let us in: {first_line(error)}") from error
    # PostgreSQL 14 has `hash_record_extended` and `client_connection_check_interval`.
    if server.info.server_version < 140000:
        version = server.info.server_version // 10000
        server.close()
        raise QueryError(f"the server is PostgreSQL {version}, and 14 is the oldest that publish supports")
    with refusals("the server refuses"):
        server.execute("; ".join(_SETTINGS))
    with suppress(psycopg.Error):  # not available on every platform
        server.execute("SET client_connection_check_interval = '500ms'")  # frees the lock of a killed publisher soon
    return server


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turn a server error into one sentence.

    `what` opens the sentence.
    """
    try:
        yield
    except psycopg.Error as error:
        # dependent objects or the duplicate key; the line of a row that the server does not take
        details = f"{error.diag.message_detail or ''}\n{error.diag.context or ''}".splitlines()
        raise QueryError(f"{what}: {first_line(error)}", details=list(filter(None, details)), hint=UNCHANGED) from error


def hold(server: Any) -> None:
    """Take the lock that makes this process the only publisher of the database.

    Raises
    ------
    QueryError
        When another publisher does not end within two seconds. The message names the publisher.
    """
    for _ in range(8):  # two seconds
        if server.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone()[0]:
            return
        time.sleep(_LONGEST_PAUSE)
    row = server.execute(
        # pg_locks has the 64 bits of the key in two columns.
        "SELECT a.pid, a.usename, a.client_addr, a.backend_start::timestamp(0)::text FROM pg_locks l "
        "JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.granted "
        "AND (l.classid::bigint << 32) + l.objid::bigint = %s",
        [_LOCK],
    ).fetchone()
    who = f": {row[1]} from {row[2] or 'this machine'} since {row[3]} (server process {row[0]})" if row else ""
    raise QueryError(f"another publish into this database is under way{who}", hint="try again when it has ended")


@dataclass(frozen=True)
class Lock:
    """A lock that a transaction needs."""

    relation: str
    """Name in SQL, after LOCK TABLE."""
    mode: str
    shown: str
    """Name of the table for messages."""


class Patience:
    """Shared time limit for all locks of one step."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """True after the time limit."""
        return time.monotonic() >= self._until


def patiently(server: Any, work: Callable[[], None], locks: Sequence[Lock], patience: Patience) -> None:
    r"""Run `work` in one transaction that holds all locks; retry until it gets them.

    Locks are taken with NOWAIT. If a lock is busy, the transaction ends, so no reader waits behind the publisher.
    After a few tries the publisher queues for that lock first, for at most a quarter of a second and without holding
    another lock. It thus gets a turn among steady readers and cannot cause a deadlock.

    Raises
    ------
    QueryError
        When an attempt fails after the time limit. The message names who holds which relation.
    """
    again = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure, errors.QueryCanceled)
    pause, attempt = _FIRST_PAUSE, 0
    wanted = list(locks)
    seen: dict[int, str] = {}
    while True:
        try:
            with server.transaction():
                _lock(server, wanted, pause if attempt > _TRIES_WITHOUT_WAITING else 0)
                server.execute("SET LOCAL lock_timeout = '100ms'")  # for locks of the catalog, which lack NOWAIT
                work()
        except again as error:
            held = _holders(server, locks, seen)
            if patience.is_over:
                raise QueryError(
                    f"gave up after {patience.seconds:g} s: {'; '.join(held) or first_line(error)}",
                    hint=f"{UNCHANGED}; what was sent is kept for the next try, --lock-timeout SECONDS waits longer",
                ) from error
            time.sleep(pause)
            pause, attempt = min(2 * pause, _LONGEST_PAUSE), attempt + 1
        else:
            return


def _lock(server: Any, wanted: list[Lock], wait: float) -> None:
    """Take the locks, waiting up to `wait` seconds for the first; move a busy lock to the front."""
    for number, lock in enumerate(wanted):
        queue = wait and not number
        if queue:
            server.execute(f"SET LOCAL lock_timeout = {round(1000 * wait)}")
        try:
            server.execute(f"LOCK TABLE {lock.relation} IN {lock.mode} MODE{'' if queue else ' NOWAIT'}")
        except errors.LockNotAvailable:
            # The next attempt queues for the first one only.
            wanted.insert(0, wanted.pop(number))
            raise


def _holders(server: Any, locks: Sequence[Lock], seen: dict[int, str]) -> list[str]:
    """Return a sentence per process that holds one of the relations: pid, application, start time."""
    rows = server.execute(
        """
        SELECT l.pid, coalesce(nullif(a.application_name, ''), 'no name'), coalesce(a.usename, '?'),
            a.xact_start::timestamp(0)::text, statement_timestamp()::timestamp(0)::text,
            array_agg(DISTINCT w.shown)
        FROM pg_locks l
        JOIN unnest(%s::text[], %s::text[]) w(relation, shown) ON to_regclass(w.relation) = l.relation
        LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'relation' AND l.granted AND l.pid <> pg_backend_pid()
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        GROUP BY 1, 2, 3, 4 ORDER BY 1
        """,
        [[lock.relation.removeprefix("ONLY ") for lock in locks], [lock.shown for lock in locks]],
    ).fetchall()
    held = []
    for pid, application, user, since, now, names in rows:
        seen.setdefault(pid, f"at least {now}")  # roles without pg_read_all_stats cannot see the start
        held.append(
            f"process {pid} ({application}, user {user}) holds {', '.join(names)} since {since or seen[pid]} UTC"
        )
    return held


def ident(*names: str) -> str:
    """Return a quoted identifier, `"schema"."name"`."""
    return ".".join(map(identifier, names))


def text(given: str) -> str:
    """Return a quoted text."""
    return sql.Literal(given).as_string(None)


def first_line(error: Exception) -> str:
    """Return the first line of an error, on one line."""
    return " ".join((str(error).strip().splitlines() or [type(error).__name__])[0].split())
