/* ---
about: What speaks against a link or a server.
--- */
SELECT cluster, switch, port, kind, server, evidence, candidate_port
FROM metrics.suspect_links
UNION ALL BY NAME
SELECT cluster, kind, server, evidence
FROM metrics.suspect_servers
ORDER BY ALL
