"""Evidence of suspect links in the release: file, and line or row."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

PAGE = "tables/metrics.suspect_links.html"
"""Page of `warehouse docs` that documents how links become suspect."""
_PLACES = """
WITH workbooks AS (
    SELECT cluster, min(release_path) AS file
    FROM raw.files
    WHERE format = 'zhejiang.workbook'
    GROUP BY cluster
),

sheet AS (
    SELECT t.cluster, t.switch, t.port, t.server, w.file || ':' || min(t.sheet_row) AS place
    FROM staging.cluster_topology AS t
    JOIN workbooks AS w USING (cluster)
    GROUP BY t.cluster, t.switch, t.port, t.server, w.file
),

counters AS (                  -- the first reading: line 1 of a file names its columns
    SELECT
        cluster,
        switch,
        port,
        min(file) || ':2' || CASE WHEN count(*) > 1 THEN ' and of later hours' ELSE '' END AS place
    FROM staging.port_files
    GROUP BY cluster, switch, port
),

stated AS (                    -- the first row of a link table with this port, at either end
    SELECT cluster, switch, port, min((file, line)) AS place
    FROM (
        SELECT cluster, switch, port, file, line FROM staging.hour_link
        UNION ALL
        SELECT cluster, peer_switch, peer_port, file, line FROM staging.hour_link
    )
    GROUP BY cluster, switch, port
)

SELECT
    s.cluster,
    s.switch,
    s.port,
    s.kind,
    CASE
        WHEN s.kind = 'peer_differs' THEN concat(stated.place[1], ':', stated.place[2])
        ELSE coalesce(sheet.place, counters.place)
    END AS place
FROM metrics.suspect_links AS s
LEFT JOIN sheet USING (cluster, switch, port, server)
LEFT JOIN counters USING (cluster, switch, port)
LEFT JOIN stated USING (cluster, switch, port)
ORDER BY ALL
"""


def evidence_rows(warehouse: duckdb.DuckDBPyConnection, site: str | None) -> str:
    """Return SELECTs of (cluster, switch, port, kind, place); PostgreSQL holds no raw files.

    Parameters
    ----------
    site
        The address of the site of `warehouse docs`; if given, each place links to the page of suspect links.
    """
    rows = warehouse.execute(_PLACES).fetchall()
    if not rows:
        rows = [("", "", "", "", "")]
    return " UNION ALL\n  ".join("SELECT " + ", ".join(_text(value) for value in _linked(row, site)) for row in rows)


def _linked(row: tuple[str | None, ...], site: str | None) -> tuple[str | None, ...]:
    *key, place = row
    if not site or not place:
        return row
    return (*key, f'<a href="{escape(site.rstrip("/"))}/{PAGE}" target="_blank">{escape(place)}</a>')


def _text(value: str | None) -> str:
    return "CAST(NULL AS VARCHAR)" if value is None else "'" + value.replace("'", "''") + "'"
