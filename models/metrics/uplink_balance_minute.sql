/* ---
about: Balance of a leaf's traffic over its uplinks in each minute and direction, beside what a fair hash of as many flows would give.
partition: hour_utc
grain: [cluster, switch, minute_utc, direction]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  minute_utc: TIMESTAMP start of the minute
  direction: VARCHAR in (from the spines) or out (to the spines)
  hour_utc: TIMESTAMP the hour
  uplinks: BIGINT [1] uplinks with counters in the hour
  total_bytes: BIGINT [B] bytes of all uplinks in the minute
  mean_bytes: DOUBLE [B] mean of the uplinks' bytes
  cov: DOUBLE [1] population standard deviation over mean; NULL under 16,666,667 B mean, 1e9 B an hour, and where quality is gap
  max_over_mean: DOUBLE [1] bytes of the fullest uplink over the mean; NULL as cov
  jain_index: DOUBLE [1] Jain's fairness index, 1/uplinks to 1; NULL as cov
  hash_null_p99: DOUBLE [1] cov that a fair hash of flows_assumed equal flows exceeds in 1 of 100 minutes; NULL above 64 uplinks, and where quality is gap
  flows_assumed: BIGINT [1] equal flows that the hash spreads; NULL where no flow and no busy access port is known
  flows_source: VARCHAR flow (flows between their first and last sample in the minute), flow_hour (none is; flows of the hour) or access_ports (busy access ports x qps_per_nic)
  quality: VARCHAR quality of the worst second of its uplinks, fine, coarse or gap; in a gap the minute was not observed
  covered_ms: INTEGER [ms] milliseconds of the minute that windows cover, of the uplink with the most
time: minute_utc
dimensions: [cluster, switch, direction, flows_source, quality]
measures:
  uplinks: sum except over minute_utc, direction
  total_bytes: sum, shown in GB
  mean_bytes: total_bytes / uplinks, shown in GB
  cov: none, shown in %
  hash_null_p99: none, shown in %
  max_over_mean: max
  jain_index: min
  covered_ms: none, shown in s
  others: none
checks:
  - direction in ('in', 'out')
  - quality in ('fine', 'coarse') or (cov is null and max_over_mean is null and jain_index is null and hash_null_p99 is null)
  - jain_index between 0 and 1.000000001 or jain_index is null
  # the bytes of each leaf and minute are those of its uplinks in port_minute
  - none: WITH moved AS (
      SELECT m.cluster, m.switch, m.minute_utc, sum(m.in_bytes) AS in_bytes, sum(m.out_bytes) AS out_bytes
      FROM metrics.port_minute AS m JOIN staging.port_files AS p USING (cluster, switch, port, hour_utc)
      WHERE p.port_class IN ('uplink', 'storage_uplink') GROUP BY ALL),
      balanced AS (SELECT cluster, switch, minute_utc, max(total_bytes) FILTER (WHERE direction = 'in') AS in_bytes,
      max(total_bytes) FILTER (WHERE direction = 'out') AS out_bytes FROM this GROUP BY ALL)
      SELECT cluster, switch, minute_utc FROM moved FULL JOIN balanced AS b USING (cluster, switch, minute_utc)
      WHERE moved.in_bytes IS DISTINCT FROM b.in_bytes OR moved.out_bytes IS DISTINCT FROM b.out_bytes
sources: docs/metrics/balance.md
--- */
WITH ports AS (
    SELECT
        cluster,
        switch,
        port,
        hour_utc,
        port_class IN ('uplink', 'storage_uplink') AS is_uplink,
        port_class IN ('access', 'storage_access') AS is_access
    FROM staging.port_files
),

uplinks AS (
    SELECT cluster, switch, hour_utc, count(*) AS uplinks
    FROM ports
    WHERE is_uplink
    GROUP BY ALL
),

moved AS (                     -- bytes of uplinks, and of access ports in the way that leads to these uplinks
    SELECT
        m.cluster,
        m.switch,
        m.minute_utc,
        m.hour_utc,
        d.direction,
        p.is_uplink,
        m.covered_ms,
        CASE m.quality WHEN 'fine' THEN 1 WHEN 'coarse' THEN 2 ELSE 3 END AS worst,
        CAST(CASE WHEN (d.direction = 'in') = p.is_uplink THEN m.in_bytes ELSE m.out_bytes END AS DECIMAL(38, 0)) AS bytes
    FROM metrics.port_minute AS m
    JOIN ports AS p USING (cluster, switch, port, hour_utc)
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    WHERE p.is_uplink OR p.is_access
),

sums AS (                      -- exact sums of integers and of their squares
    SELECT
        cluster,
        switch,
        minute_utc,
        hour_utc,
        direction,
        sum(bytes) FILTER (WHERE is_uplink) AS total,
        sum(bytes * bytes) FILTER (WHERE is_uplink) AS squares,
        max(bytes) FILTER (WHERE is_uplink) AS largest,
        max(covered_ms) FILTER (WHERE is_uplink) AS covered_ms,
        max(worst) FILTER (WHERE is_uplink) AS worst,
        sum(bytes) FILTER (WHERE NOT is_uplink) AS access_total,
        sum(bytes * bytes) FILTER (WHERE NOT is_uplink) AS access_squares
    FROM moved
    GROUP BY ALL
    HAVING bool_or(is_uplink)
),

paths AS (                     -- pairs of leaves by number: names would be held with each flow
    SELECT *, CAST(dense_rank() OVER (ORDER BY cluster, hour_utc, source_switch, dest_switch) AS INTEGER) AS path
    FROM (SELECT DISTINCT cluster, hour_utc, source_switch, dest_switch FROM staging.hour_flow)
    WHERE source_switch <> dest_switch
),

flows AS (                     -- flows that cross uplinks, with the packets of their samples
    SELECT
        p.path,
        {{ flow_key('f') }} AS flow,
        min(CAST(epoch_ms(f.time_utc) // 60000 AS INTEGER)) AS first_minute,
        max(CAST(epoch_ms(f.time_utc) // 60000 AS INTEGER)) AS last_minute,
        sum(f.packets) AS packets
    FROM staging.hour_flow AS f
    JOIN paths AS p USING (cluster, hour_utc, source_switch, dest_switch)
    GROUP BY ALL
),

spans AS (                     -- flows with the same first and last minute
    SELECT
        path,
        make_timestamp_ms(60000 * CAST(first_minute AS BIGINT)) AS first_minute,
        make_timestamp_ms(60000 * CAST(last_minute + 1 AS BIGINT)) AS next_minute,
        sum(CAST(packets AS DECIMAL(38, 0))) AS packets,
        sum(CAST(packets AS DECIMAL(38, 0)) * CAST(packets AS DECIMAL(38, 0))) AS squares
    FROM flows
    GROUP BY ALL
),

ends AS (                      -- spans seen from each leaf
    SELECT
        p.cluster,
        CASE d.direction WHEN 'out' THEN p.source_switch ELSE p.dest_switch END AS switch,
        p.hour_utc,
        d.direction,
        s.first_minute,
        s.next_minute,
        s.packets,
        s.squares
    FROM spans AS s
    JOIN paths AS p USING (path)
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
),

crossing AS (                  -- as many equal flows would be spread as unevenly: (sum of packets)^2 / sum of squares
    SELECT
        cluster,
        switch,
        hour_utc,
        direction,
        CAST(sum(packets) * sum(packets) AS DOUBLE) / nullif(CAST(sum(squares) AS DOUBLE), 0) AS flows
    FROM ends
    GROUP BY ALL
),

changes AS (                   -- a flow is active from its first to its last sample
    SELECT cluster, switch, hour_utc, direction, first_minute AS minute_utc, packets, squares
    FROM ends
    UNION ALL
    SELECT cluster, switch, hour_utc, direction, next_minute AS minute_utc, -packets, -squares
    FROM ends
),

active AS (                    -- the same of the flows that are active from a minute on, up to the next change
    SELECT
        cluster,
        switch,
        hour_utc,
        direction,
        minute_utc,
        sum(sum(packets)) OVER until_now AS packets,
        sum(sum(squares)) OVER until_now AS squares
    FROM changes
    GROUP BY cluster, switch, hour_utc, direction, minute_utc
    WINDOW until_now AS (PARTITION BY cluster, switch, hour_utc, direction ORDER BY minute_utc)
),

moving AS (
    SELECT s.*, CAST(a.packets * a.packets AS DOUBLE) / nullif(CAST(a.squares AS DOUBLE), 0) AS active_flows
    FROM sums AS s
    ASOF LEFT JOIN active AS a
        ON
            a.cluster = s.cluster AND a.switch = s.switch AND a.hour_utc = s.hour_utc AND a.direction = s.direction
            AND a.minute_utc <= s.minute_utc
),

assumed AS (                   -- equal flows: of the flow table, else of the access ports, weighted by their bytes
    SELECT
        s.*,
        u.uplinks AS n,
        s.worst < 3 AS is_observed,
        s.worst < 3 AND s.total * 60 >= 1000000000 * u.uplinks AS is_judged,
        CASE
            WHEN s.active_flows IS NOT NULL THEN 'flow'
            WHEN f.flows IS NOT NULL THEN 'flow_hour'
            WHEN s.access_total > 0 THEN 'access_ports'
        END AS flows_source,
        CAST(
            greatest(
                1,
                floor(
                    coalesce(
                        s.active_flows,
                        f.flows,
                        coalesce(c.qps_per_nic, 2) * CAST(s.access_total * s.access_total AS DOUBLE)
                        / nullif(CAST(s.access_squares AS DOUBLE), 0)
                    )
                )
            ) AS BIGINT
        ) AS flows_or_one
    FROM moving AS s
    JOIN uplinks AS u USING (cluster, switch, hour_utc)
    LEFT JOIN crossing AS f USING (cluster, switch, hour_utc, direction)
    LEFT JOIN reference.clusters AS c ON c.cluster = s.cluster
),

fair AS (                      -- percentiles of X^2 = flows x cov^2; a row holds up to the next number of flows
    SELECT
        uplinks,
        flows,
        coalesce(lead(flows) OVER (PARTITION BY uplinks ORDER BY flows), 1000000000) AS next_flows,
        chi_square_p99
    FROM reference.hash_null
)

SELECT
    a.cluster,
    a.switch,
    a.minute_utc,
    a.direction,
    a.hour_utc,
    a.n AS uplinks,
    CAST(a.total AS BIGINT) AS total_bytes,
    CAST(a.total AS DOUBLE) / a.n AS mean_bytes,
    CASE WHEN a.is_judged THEN sqrt(CAST(a.n * a.squares - a.total * a.total AS DOUBLE)) / CAST(a.total AS DOUBLE) END AS cov,
    CASE WHEN a.is_judged THEN a.largest * a.n / CAST(a.total AS DOUBLE) END AS max_over_mean,
    CASE WHEN a.is_judged THEN CAST(a.total AS DOUBLE) * CAST(a.total AS DOUBLE) / CAST(a.n * a.squares AS DOUBLE) END AS jain_index,
    CASE WHEN a.is_observed AND a.flows_source IS NOT NULL THEN sqrt(f.chi_square_p99 / a.flows_or_one) END AS hash_null_p99,
    CASE WHEN a.flows_source IS NOT NULL THEN a.flows_or_one END AS flows_assumed,
    a.flows_source,
    CASE a.worst WHEN 1 THEN 'fine' WHEN 2 THEN 'coarse' ELSE 'gap' END AS quality,
    a.covered_ms
FROM assumed AS a
LEFT JOIN fair AS f ON f.uplinks = a.n AND a.flows_or_one >= f.flows AND a.flows_or_one < f.next_flows
