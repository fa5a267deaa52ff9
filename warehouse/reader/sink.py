"""Destination of a result: a terminal, a pipe, or a file that is replaced atomically."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from warehouse.base.errors import QueryError
from warehouse.reader.agent import AGENT, is_agent
from warehouse.reader.output import FORMATS, SUFFIXES, check_format
from warehouse.store.atomic import replacing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def choose_format(name: str | None, output: Path | None, stream: TextIO) -> str:
    """Return the format that is named, else the format of the file's suffix, else the stream's default."""
    if name is not None:
        chosen = check_format(name)
    elif output is not None:
        found = SUFFIXES.get(output.suffix.lower())
        if found is None:
            raise QueryError(f"no format is known for {output.name}", hint=f"--format {'|'.join(FORMATS)}")
        chosen = found
    else:
        chosen = "table" if stream.isatty() else AGENT if is_agent() else "csv"
    if chosen == "parquet" and output is None:
        raise QueryError("Parquet is written to a file", hint="-o FILE.parquet")
    return chosen


def check_output(output: Path, target: Path) -> None:
    """Refuse an output file that cannot be written or is inside the target."""
    if output.is_dir():
        raise QueryError(f"{output} is a folder", hint="-o FILE")
    if not output.absolute().parent.is_dir():
        raise QueryError(f"{output} cannot be written: its folder does not exist")
    refuse_in_target(output, target)


def refuse_in_target(place: Path, target: Path) -> None:
    """Raise QueryError if a path lies in the target."""
    if place.resolve().is_relative_to(target.resolve()):
        raise QueryError(
            f"{place} lies in the target, which only `warehouse build` writes", hint="choose another place"
        )


@contextmanager
def open_sink(output: Path | None, stream: TextIO) -> Iterator[TextIO]:
    """Open the output for text; a file is replaced at the end."""
    if output is None:
        yield stream
        return
    with output_errors(output), replacing(output) as path, path.open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def output_errors(output: Path) -> Iterator[None]:
    """Raise QueryError if the output cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise QueryError(f"{output} cannot be written: {error.strerror}") from error


def leave_pipe(stream: TextIO) -> None:
    """Discard buffered output after the reader closed the pipe, without a message."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
