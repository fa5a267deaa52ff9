/* ---
about: What to look at of each switch and server, findings first, else suspicions, a port counted at both its ends.
--- */
WITH found AS (
    SELECT cluster, split_part(where_, ' ', 1) AS name, what, 'index.html#finding-' || kind AS place
    FROM metrics.findings
    WHERE severity = 'warning'
),

suspects AS (
    SELECT cluster, switch, port, server, kind
    FROM metrics.suspect_links
    UNION ALL BY NAME
    SELECT cluster, server, kind
    FROM metrics.suspect_servers
),

named AS (
    SELECT cluster, switch AS name, kind
    FROM suspects
    UNION ALL
    SELECT cluster, server AS name, kind
    FROM suspects
    UNION ALL
    SELECT s.cluster, p.peer_switch AS name, s.kind
    FROM suspects AS s
    JOIN topology.ports AS p USING (cluster, switch, port)
)

SELECT DISTINCT cluster, name, what, place
FROM found
UNION ALL
SELECT DISTINCT cluster, name, replace(kind, '_', ' ') AS what, 'queries.html#suspect-links' AS place
FROM named
ANTI JOIN found USING (cluster, name)
WHERE name IS NOT NULL
ORDER BY ALL
