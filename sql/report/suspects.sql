/* ---
about: Links where workbook and traffic contradict each other, or that are dead one way.
--- */
SELECT switch, port, kind, server, nic, evidence, candidate_port, hours, cluster
FROM metrics.suspect_links
ORDER BY cluster, kind, length(switch), switch, port
