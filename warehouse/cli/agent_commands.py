"""Commands `warehouse mcp` and `warehouse skill`: for agents."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from warehouse.base.errors import SettingsError
from warehouse.cli.options import DATA, PROJECT, TARGET, command, option, seconds, settings

MEMORY, SECONDS = "1GB", 30.0
"""Limits of a query of an agent."""


@command(
    "mcp",
    "serve the warehouse to an agent over stdio (Model Context Protocol); read-only",
    "warehouse mcp -t build/warehouse",
    TARGET,
    PROJECT,
    *DATA,
    option("--timeout", metavar="SECONDS", type=seconds, default=SECONDS, help="time of a query (default 30)"),
    option("--memory", metavar="SIZE", default=MEMORY, help="memory of a query (default 1GB)"),
)
def run_mcp(given: argparse.Namespace) -> int:
    """Serve until the client closes stdin; end at once if there is no warehouse: clients show what is on stderr."""
    from warehouse.api.warehouse import Warehouse

    settled = settings(given)
    Warehouse(settled.target, project=settled.project, data=settled.data).close()
    try:
        from warehouse.cli.mcp_server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise SettingsError("the package mcp is missing", hint="pip install 'gpu-warehouse[mcp]'") from error

    if sys.stdin.isatty():
        sys.stderr.write("asked on stdin by the client of an agent (docs/mcp.md); Ctrl-C ends it\n")
    serve(settled, timeout=given.timeout, memory=given.memory)
    return 0


@command("skill", "print a SKILL.md that says to an agent how to ask", "warehouse skill > SKILL.md")
def run_skill(given: argparse.Namespace) -> int:
    """Print the file."""
    print(Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8"), end="")
    return 0
