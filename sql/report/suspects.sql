/* ---
about: Links where workbook and traffic contradict each other, or that are dead in one direction.
params:
  cluster: VARCHAR the cluster
--- */
WITH moved AS (                     -- bytes of dead links in both directions, with one decimal of their unit
    SELECT
        *,
        list_transform(
            regexp_extract_all(evidence, '([0-9]+) B', 1),
            LAMBDA n: formatReadableDecimalSize(
                CAST(round(CAST(n AS BIGINT), CAST(1 - 3 * ((length(n) - 1) // 3) AS INTEGER)) AS BIGINT)
            )
        ) AS readable
    FROM metrics.suspect_links
    WHERE cluster = $cluster
)
SELECT
    switch,
    regexp_extract(port, '[0-9].*$') AS port,
    replace(kind, '_', ' ') AS kind,
    server,
    nic,
    CASE
        WHEN starts_with(kind, 'uplink_dead')
            THEN concat('in ', readable[1], ', out ', readable[2], ': one way is under a millionth of the other')
        ELSE evidence
    END AS evidence,
    regexp_extract(candidate_port, '[0-9].*$') AS candidate_port,
    hours
FROM moved
ORDER BY NOT starts_with(kind, 'uplink_dead'), kind, length(switch), switch, port
