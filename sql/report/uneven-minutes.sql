/* ---
about: Balance of each leaf's uplinks by minute, compared with a fair hash of as many flows, in an hour.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH compared AS (
    SELECT *, cov / hash_null_p99 AS over_null
    FROM metrics.uplink_balance_minute
    WHERE cluster = $cluster AND hour_utc = $hour AND cov IS NOT NULL AND hash_null_p99 > 0
),
leaves AS (
    SELECT
        switch,
        direction,
        count(*) AS minutes,
        count(*) FILTER (WHERE over_null > 1) AS minutes_above,
        median(over_null) AS median_over_null,
        max(over_null) AS largest_over_null,
        strftime(arg_max(minute_utc, (over_null, minute_utc)), '%H:%M') AS minute,
        CAST(median(flows_assumed) AS BIGINT) AS flows_assumed,
        replace(min(flows_source), '_', ' ') AS flows_source
    FROM compared
    GROUP BY ALL
)
SELECT
    switch,
    direction,
    minutes,
    minutes_above,
    round(100 * median_over_null, 1) AS median_percent,
    round(100 * largest_over_null, 1) AS largest_percent,
    minute,
    flows_assumed,
    flows_source,
    100 AS limit_percent,
    row_number() OVER (ORDER BY largest_over_null DESC, switch, direction) AS place
FROM leaves
ORDER BY starts_with(switch, 'ST-'), length(switch), switch, direction
