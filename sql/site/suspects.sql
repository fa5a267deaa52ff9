/* ---
about: Kinds of suspicion against each switch and server, a suspect port counted at both its ends.
--- */
WITH suspects AS (
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

SELECT DISTINCT cluster, name, replace(kind, '_', ' ') AS kind
FROM named
WHERE name IS NOT NULL
ORDER BY ALL
