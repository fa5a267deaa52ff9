/* ---
about: Evidence against suspect links and servers.
--- */
SELECT cluster, switch, port, kind, server, evidence, candidate_port
FROM metrics.suspect_links
UNION ALL BY NAME
SELECT cluster, kind, server, evidence
FROM metrics.suspect_servers
ORDER BY ALL
