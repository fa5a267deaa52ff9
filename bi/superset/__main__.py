"""python -m bi.superset TARGET URI FILE: write the dashboard bundle of one connection.

python -m bi.superset build/warehouse duckdb:////data/warehouse/warehouse.duckdb dashboard.zip
python -m bi.superset build/warehouse postgresql+psycopg2://dashboards@localhost:5432/traces dashboard.zip --name traces
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import warehouse
from bi.superset.bundle import bundle
from warehouse.base.errors import WarehouseError
from warehouse.store.atomic import replacing


def main() -> int:
    """Write the bundle and print how to import it."""
    options = argparse.ArgumentParser(
        prog="python -m bi.superset", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("target", type=Path, help="folder of a built warehouse")
    options.add_argument("uri", help="SQLAlchemy URI of the tables, as Superset reaches them")
    options.add_argument("file", type=Path, help="zip file to write")
    options.add_argument("--name", help="name of the connection (default: warehouse in DuckDB or PostgreSQL)")
    options.add_argument("--site", help="URL of the site of `warehouse docs`, if it is served: evidence links to it")
    given = options.parse_args()
    engine = "DuckDB" if given.uri.startswith("duckdb:") else "PostgreSQL"
    try:
        with warehouse.open(given.target) as opened, replacing(given.file) as temporary:
            temporary.write_bytes(bundle(opened, given.uri, given.name or f"warehouse in {engine}", given.site))
    except (WarehouseError, LookupError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Wrote  {given.file}: python -m bi.superset.load {given.file} http://127.0.0.1:8088")
    return 0


if __name__ == "__main__":
    sys.exit(main())
