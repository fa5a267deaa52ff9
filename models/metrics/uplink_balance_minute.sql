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
WITH ports AS (                -- uplinks and access ports, with the number of uplinks of their switch
    SELECT
        cluster,
        switch,
        port,
        hour_utc,
        port_class IN ('uplink', 'storage_uplink') AS is_uplink,
        count(*) FILTER (WHERE is_uplink) OVER (PARTITION BY cluster, switch, hour_utc) AS uplinks
    FROM staging.port_files
    WHERE port_class IN ('uplink', 'storage_uplink', 'access', 'storage_access')
),

moved AS (                     -- bytes of uplinks, and of access ports in the way that leads to these uplinks
    SELECT
        m.cluster,
        m.switch,
        m.minute_utc,
        m.hour_utc,
        d.direction,
        p.uplinks,
        p.is_uplink,
        m.covered_ms,
        CASE m.quality WHEN 'fine' THEN 1 WHEN 'coarse' THEN 2 ELSE 3 END AS worst,
        CASE WHEN (d.direction = 'in') = p.is_uplink THEN m.in_bytes ELSE m.out_bytes END::DECIMAL(38, 0) AS bytes
    FROM metrics.port_minute AS m
    JOIN ports AS p USING (cluster, switch, port, hour_utc)  -- check
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)  -- check
),

sums AS (                      -- exact sums of integers and of their squares
    SELECT
        cluster,
        switch,
        minute_utc,
        hour_utc,
        direction,
        uplinks,
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
    SELECT *, dense_rank() OVER (ORDER BY cluster, hour_utc, source_switch, dest_switch)::INTEGER AS path
    FROM (SELECT DISTINCT cluster, hour_utc, source_switch, dest_switch FROM staging.hour_flow)
    WHERE source_switch <> dest_switch
),

flows AS (                     -- flows that cross uplinks, with the packets of their samples
    SELECT
        p.path,
        {{ flow_key('f') }} AS flow,
        min((epoch_ms(f.time_utc) // 60000)::INTEGER) AS first_minute,
        max((epoch_ms(f.time_utc) // 60000)::INTEGER) AS last_minute,
        sum(f.packets)::DECIMAL(38, 0) AS packets
    FROM staging.hour_flow AS f
    JOIN paths AS p USING (cluster, hour_utc, source_switch, dest_switch)  -- once
    GROUP BY ALL
),

spans AS (                     -- flows with the same first and last minute
    SELECT path, first_minute, last_minute, sum(packets) AS packets, sum(packets * packets) AS squares
    FROM flows
    GROUP BY ALL
),

ends AS (                      -- spans seen from each leaf
    SELECT
        p.cluster,
        CASE d.direction WHEN 'out' THEN p.source_switch ELSE p.dest_switch END AS switch,
        p.hour_utc,
        d.direction,
        make_timestamp_ms(60000 * s.first_minute::BIGINT) AS minute_utc,
        make_timestamp_ms(60000 * (s.last_minute + 1)::BIGINT) AS next_minute,
        s.packets,
        s.squares
    FROM spans AS s
    JOIN paths AS p USING (path)  -- once
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)  -- count
),

-- As many equal flows would be spread as unevenly: (sum of packets)^2 / sum of squares. Of the whole hour:
crossing AS (
    SELECT cluster, switch, hour_utc, direction, (sum(packets) * sum(packets))::DOUBLE / nullif(sum(squares)::DOUBLE, 0) AS hour_flows
    FROM ends
    GROUP BY ALL
),

changes AS (                   -- a flow is active from its first to its last sample
    SELECT * EXCLUDE (next_minute) FROM ends
    UNION ALL
    SELECT * EXCLUDE (next_minute) REPLACE (next_minute AS minute_utc, -packets AS packets, -squares AS squares) FROM ends
),

active AS (                    -- sums over the flows that are active from a minute on, up to the next change
    SELECT
        cluster,
        switch,
        hour_utc,
        direction,
        minute_utc,
        sum(sum(packets)) OVER until_now AS active_packets,
        sum(sum(squares)) OVER until_now AS active_squares
    FROM changes
    GROUP BY cluster, switch, hour_utc, direction, minute_utc
    WINDOW until_now AS (PARTITION BY cluster, switch, hour_utc, direction ORDER BY minute_utc)
),

assumed AS (                   -- equal flows: of the flow table, else of the access ports, weighted by their bytes
    SELECT
        s.*,
        s.worst < 3 AS is_observed,
        s.worst < 3 AND s.total * 60 >= 1000000000 * s.uplinks AS is_judged,
        (a.active_packets * a.active_packets)::DOUBLE / nullif(a.active_squares::DOUBLE, 0) AS active_flows,
        (s.access_total * s.access_total)::DOUBLE / nullif(s.access_squares::DOUBLE, 0) AS equal_ports,
        CASE
            WHEN active_flows IS NOT NULL THEN 'flow'
            WHEN f.hour_flows IS NOT NULL THEN 'flow_hour'
            WHEN s.access_total > 0 THEN 'access_ports'
        END AS flows_source,
        greatest(1, floor(coalesce(active_flows, f.hour_flows, coalesce(c.qps_per_nic, 2) * equal_ports)))::BIGINT AS flows_or_one
    FROM sums AS s
    ASOF LEFT JOIN active AS a USING (cluster, switch, hour_utc, direction, minute_utc)  -- once
    LEFT JOIN crossing AS f USING (cluster, switch, hour_utc, direction)  -- once
    LEFT JOIN reference.clusters AS c USING (cluster)  -- once
)

-- percentiles of X^2 = flows x cov^2; a row of hash_null holds up to the next number of flows
SELECT
    a.cluster,
    a.switch,
    a.minute_utc,
    a.direction,
    a.hour_utc,
    a.uplinks,
    a.total::BIGINT AS total_bytes,
    a.total::DOUBLE / a.uplinks AS mean_bytes,
    CASE WHEN a.is_judged THEN sqrt((a.uplinks * a.squares - a.total * a.total)::DOUBLE) / a.total::DOUBLE END AS cov,
    CASE WHEN a.is_judged THEN a.largest * a.uplinks / a.total::DOUBLE END AS max_over_mean,
    CASE WHEN a.is_judged THEN a.total::DOUBLE * a.total::DOUBLE / (a.uplinks * a.squares)::DOUBLE END AS jain_index,
    CASE WHEN a.is_observed AND a.flows_source IS NOT NULL THEN sqrt(n.chi_square_p99 / a.flows_or_one) END AS hash_null_p99,
    CASE WHEN a.flows_source IS NOT NULL THEN a.flows_or_one END AS flows_assumed,
    a.flows_source,
    CASE a.worst WHEN 1 THEN 'fine' WHEN 2 THEN 'coarse' ELSE 'gap' END AS quality,
    a.covered_ms
FROM assumed AS a
ASOF LEFT JOIN reference.hash_null AS n ON n.uplinks = a.uplinks AND n.flows <= a.flows_or_one  -- grain, once
