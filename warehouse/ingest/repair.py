"""Mended copies: CSV files with bad lines are read from a copy without those, which the target keeps.

Why copies: docs/adr/0003-mended-copies.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from warehouse.base import hashing
from warehouse.base.errors import DataError
from warehouse.base.text import plural
from warehouse.formats.base import PARTIAL, CsvFormat, Format, RawFile, Rejected
from warehouse.store.atomic import temporary_path, write_text
from warehouse.store.signatures import read_text


class LineRepair:
    """Looks through CSV files line by line, and remembers what it saw.

    Parameters
    ----------
    folder
        Where copies and what was seen are kept; it may be missing.
    formats
        By name; each of a file that is mended is a CsvFormat.
    paranoid
        Believe nothing of what was seen before.
    max_rejected
        The share of bad rows that a relation with a limit may have.
    """

    def __init__(self, folder: Path, formats: Mapping[str, Format], *, paranoid: bool, max_rejected: float) -> None:
        self._folder = folder
        self._formats = formats
        self._paranoid = paranoid
        self._max_rejected = max_rejected

    def has_repaired(self) -> bool:
        """Whether anything was ever mended here."""
        return self._folder.is_dir()

    def is_remembered(self, files: Sequence[RawFile]) -> bool:
        """Whether an earlier build looked through just these together, and found bad lines."""
        return self._mark_of(files).is_file()

    def remember(self, files: Sequence[RawFile]) -> None:
        """Have the next build know that these were looked through and had bad lines."""
        self._mark_of(files).touch()

    def _mark_of(self, files: Sequence[RawFile]) -> Path:
        """What says that these files were looked through and had bad lines."""
        said = [(file.release_path, file.digest, self._formats[file.format or ""].version) for file in files]
        return self._folder / f"{hashing.of(said)}.mended"

    def repair(self, file: RawFile) -> tuple[RawFile, list[Rejected]]:
        """The file to read instead, and the lines that are not in it; the file itself where nothing is wrong."""
        clean, lines, changed = self._look_through(file)
        if not changed:
            return file, []
        if not lines:
            return file.but(reason="its lines do not all end alike: read from a mended copy", clean_path=clean), []
        self._not_too_many(file, clean, lines)
        first = lines[0]
        more = f" and {plural(len(lines) - 1, 'more line')}" if len(lines) > 1 else ""
        return file.but(status=PARTIAL, reason=f"line {first.line}: {first.reason}{more}", clean_path=clean), lines

    def _not_too_many(self, file: RawFile, clean: Path, lines: list[Rejected]) -> None:
        """Refuse a file of a relation that limits its bad lines when it has more. Raises DataError."""
        one = self._formats[file.format or ""]
        with clean.open("rb") as stream:
            rows = len(lines) + sum(1 for _ in stream) - 1
        if one.relations[0].limited and len(lines) > self._max_rejected * rows:
            raise DataError(
                f"{file.path}: {len(lines):,} of {plural(rows, 'row')} cannot be read, more than --max-rejected allows"
                f" ({self._max_rejected:.3g} of them)",
                details=[f"  line {bad.line}: {bad.reason}" for bad in lines[:3]],
                hint="mend the file, or set the rows aside with a larger --max-rejected",
            )

    def _look_through(self, file: RawFile) -> tuple[Path, list[Rejected], bool]:
        """(mended copy, bad lines, whether the copy differs); remembered, since it takes seconds for a large hour."""
        one = self._formats[file.format or ""]
        assert isinstance(one, CsvFormat)
        folder = self._folder / f"{file.digest}-{one.version}"
        name = file.path.name.removesuffix(file.path.suffix) if file.path.suffix != ".csv" else file.path.name
        clean, noted = folder / name, folder / "lines.json"
        try:
            said = json.loads(read_text(noted))
            lines = [Rejected(file.release_path, *line) for line in said["lines"]]
            if not self._paranoid and (clean.is_file() or not said["changed"]):
                return clean, lines, said["changed"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # not looked through yet
        folder.mkdir(parents=True, exist_ok=True)
        repaired = temporary_path(clean)
        try:
            lines = list(one.repair(file, repaired))
            changed = bool(lines) or hashing.of_file(repaired) != file.digest
            if changed:
                repaired.replace(clean)
        finally:
            repaired.unlink(missing_ok=True)
        said = {"changed": changed, "lines": [(line.line, line.reason, line.text) for line in lines]}
        write_text(noted, json.dumps(said))
        return clean, lines, changed
