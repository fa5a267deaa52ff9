/* ---
about: Balance of a leaf's traffic over its uplinks, per hour and direction.
partition: hour_utc
grain: [cluster, switch, hour_utc, direction]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  hour_utc: TIMESTAMP the hour
  direction: VARCHAR in (from the spines) or out (to the spines)
  uplinks: BIGINT [1] uplinks with counters
  mean_bytes: DOUBLE [B] mean of the uplinks' bytes
  cov: DOUBLE [1] population standard deviation over mean; NULL under 1e9 B mean
  max_over_mean: DOUBLE [1] bytes of the fullest uplink over the mean; NULL under 1e9 B mean
  jain_index: DOUBLE [1] Jain's fairness index, 1/uplinks to 1; NULL under 1e9 B mean
  flows: BIGINT [1] flows that cross the uplinks, from the hour's flow table; NULL without a flow table
  flow_imbalance: DOUBLE [1] FlowTracer's mean deviation from an even spread, with flows assigned to uplinks in proportion to bytes; NULL without flows
time: hour_utc
measures:
  uplinks: sum except over hour_utc, direction
  mean_bytes: none, shown in GB
  cov: none, shown in %
  max_over_mean: max
  jain_index: min
  flows: sum except over hour_utc
  flow_imbalance: none
checks:
  - direction in ('in', 'out')
  - jain_index between 0 and 1.000000001 or jain_index is null
  # every uplink counts once in each direction
  - none: WITH uplinks AS (
      SELECT cluster, switch, hour_utc, count(*) AS there FROM metrics.port_hour WHERE port_class IN ('uplink', 'storage_uplink') GROUP BY ALL)
      SELECT u.cluster, u.switch, u.there, sum(b.uplinks) AS counted FROM uplinks AS u LEFT JOIN this AS b USING (cluster, switch, hour_utc)
      GROUP BY u.cluster, u.switch, u.hour_utc, u.there HAVING count(*) <> 2 OR sum(b.uplinks) IS DISTINCT FROM 2 * u.there
  - warn: cov < 0.1 or cov is null or starts_with(switch, 'ST-')
    says: "{switch}, {direction}: bytes of its {uplinks} uplinks: standard deviation {cov:.1%} of the mean, the fullest has {max_over_mean:.2f} times it"
sources: docs/metrics/balance.md
--- */
WITH uplink_bytes AS (         -- one row per uplink and direction
    SELECT
        h.cluster,
        h.switch,
        h.hour_utc,
        d.direction,
        CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END AS bytes
    FROM metrics.port_hour AS h
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)  -- check
    WHERE h.port_class IN ('uplink', 'storage_uplink')
),

sums AS (                      -- exact sums of integers and of their squares
    SELECT
        cluster,
        switch,
        hour_utc,
        direction,
        count(*) AS n,
        sum(CAST(bytes AS DECIMAL(38, 0))) AS total,
        sum(CAST(bytes AS DECIMAL(38, 0)) * CAST(bytes AS DECIMAL(38, 0))) AS squares,
        max(bytes) AS largest
    FROM uplink_bytes
    GROUP BY ALL
),

deviations AS (                -- n times the sum of distances from the mean, in integers
    SELECT
        u.cluster,
        u.switch,
        u.hour_utc,
        u.direction,
        sum(abs(CAST(u.bytes AS DECIMAL(38, 0)) * s.n - s.total)) AS deviation
    FROM uplink_bytes AS u
    JOIN sums AS s USING (cluster, switch, hour_utc, direction)  -- whole
    GROUP BY ALL
),

crossing AS (                  -- flows whose ends are on different leaves, seen from each leaf
    SELECT
        f.cluster,
        CASE d.direction WHEN 'out' THEN f.source_switch ELSE f.dest_switch END AS switch,
        f.hour_utc,
        d.direction,
        list_unique(list({{ flow_key('f') }})) AS flows  -- lint: allow order because distinct ones are counted
    FROM staging.hour_flow AS f
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)  -- count
    WHERE f.source_switch <> f.dest_switch
    GROUP BY ALL
)

SELECT
    s.cluster,
    s.switch,
    s.hour_utc,
    s.direction,
    s.n AS uplinks,
    CAST(s.total AS DOUBLE) / s.n AS mean_bytes,
    CASE
        WHEN s.total >= 1000000000 * s.n
            THEN sqrt(CAST(s.n * s.squares - s.total * s.total AS DOUBLE)) / CAST(s.total AS DOUBLE)
    END AS cov,
    CASE WHEN s.total >= 1000000000 * s.n THEN s.largest * s.n / CAST(s.total AS DOUBLE) END AS max_over_mean,
    CASE
        WHEN s.total >= 1000000000 * s.n
            THEN CAST(s.total AS DOUBLE) * CAST(s.total AS DOUBLE) / CAST(s.n * s.squares AS DOUBLE)
    END AS jain_index,
    c.flows,
    CASE WHEN c.flows > 0 AND s.total > 0 THEN CAST(v.deviation AS DOUBLE) / s.n / CAST(s.total AS DOUBLE) END
        AS flow_imbalance
FROM sums AS s
JOIN deviations AS v USING (cluster, switch, hour_utc, direction)  -- check, whole
LEFT JOIN crossing AS c USING (cluster, switch, hour_utc, direction)  -- once
