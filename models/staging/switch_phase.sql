/* ---
about: Time in each second at which a switch refreshes the counters of its ports. It differs by switch and hardly changes in an hour.
partition: hour_utc
grain: [cluster, switch, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR short name of the switch
  hour_utc: TIMESTAMP the hour
  phase_ms: INTEGER [ms] time of the refresh in a second, 0 to 999, as polls of its access ports show it
  spread_ms: INTEGER [ms] largest difference between the phase of ten minutes and that of the hour
  readings: BIGINT [1] rows with bytes that it is computed from
checks:
  - phase_ms between 0 and 999 and spread_ms between 0 and 500 and readings > 0
sources: docs/metrics/periods.md
--- */
WITH middles AS (              -- a counter that shows bytes was refreshed between two polls: in the mean, halfway
    SELECT
        cluster,
        switch,
        hour_utc,
        offset_ms // 600000 AS part,
        refreshed,
        pi() * (previous_ms + offset_ms) / 1000 AS angle
    FROM staging.switch_polls
    WHERE offset_ms - previous_ms < 1000 AND refreshed > 0
),

vectors AS (                   -- sums of integers, which are equal in any order; of ten minutes, and of the hour (part is NULL)
    SELECT
        cluster,
        switch,
        hour_utc,
        part,
        sum(refreshed)::BIGINT AS readings,
        sum(refreshed * round(1000000 * cos(angle))::BIGINT) AS x,  -- lint: allow last-bits because it is rounded
        sum(refreshed * round(1000000 * sin(angle))::BIGINT) AS y  -- lint: allow last-bits because it is rounded
    FROM middles
    GROUP BY GROUPING SETS ((cluster, switch, hour_utc, part), (cluster, switch, hour_utc))
),

phases AS (
    SELECT *, (round(500 * atan2(y, x) / pi())::INTEGER + 1000) % 1000 AS phase_ms  -- lint: allow last-bits because it is rounded
    FROM vectors
)

SELECT
    h.cluster,
    h.switch,
    h.hour_utc,
    h.phase_ms,
    max(500 - abs(500 - abs(p.phase_ms - h.phase_ms))) AS spread_ms,
    h.readings
FROM phases AS h
JOIN phases AS p USING (cluster, switch, hour_utc)
WHERE h.part IS NULL AND p.part IS NOT NULL
GROUP BY ALL
