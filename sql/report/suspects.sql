/* ---
about: Links where workbook and traffic contradict each other, or that carry no data in one direction.
params:
  cluster: VARCHAR the cluster
--- */
WITH shown AS (
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
),
told AS (
    SELECT
        format('Suspect links: {}, each with its evidence', count(*)) AS title,
        'A suspect link carries no data one way, or the workbook and the traffic contradict each other. No table corrects the workbook.'
            AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY NOT starts_with(kind, 'uplink '), kind, length(switch), switch, port
