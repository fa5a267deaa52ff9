/* ---
about: Links where workbook and traffic contradict each other, or that carry no data in one direction.
params:
  cluster: VARCHAR the cluster
--- */
SELECT
    switch,
    regexp_extract(port, '[0-9].*$') AS port,
    replace(kind, '_', ' ') AS kind,
    server,
    nic,
    evidence,
    regexp_extract(candidate_port, '[0-9].*$') AS candidate_port,
    hours
FROM metrics.suspect_links
WHERE cluster = $cluster
ORDER BY NOT starts_with(kind, 'uplink_'), kind, length(switch), switch, port
