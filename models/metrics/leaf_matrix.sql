/* ---
about: 'Bytes from leaf to leaf in one hour: bounds that counters prove, and an estimate between them. Sums over rows and columns are the bytes of the leaf''s access ports.'
partition: hour_utc
grain: [cluster, src, dst, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  src: VARCHAR leaf or storage leaf of the senders; outside is every other place
  dst: VARCHAR leaf or storage leaf of the receivers, the same one for traffic that stays under a leaf; outside is every other place
  hour_utc: TIMESTAMP the hour
  bytes_low: BIGINT [B] bytes that went from src to dst at least, by the counters
  bytes_estimate: BIGINT [B] likely bytes, between the bounds
  bytes_high: BIGINT [B] bytes that went from src to dst at most, by the counters
  evidence: VARCHAR what the estimate starts from, counters (the leaf's own ports say it), flow (flow table), job (groups of traffic) or gravity (sums alone)
time: hour_utc
dimensions: [cluster, src, dst, evidence]
measures:
  bytes_estimate: sum, shown in TB
  bytes_low, bytes_high: none, shown in TB
checks:
  - bytes_estimate between bytes_low and bytes_high and bytes_low >= 0
  - evidence in ('counters', 'flow', 'job', 'gravity')
  # what a leaf's servers sent and received, to the byte
  - none: SELECT cluster, switch, hour_utc, access_in_bytes, sum(bytes_estimate) AS bytes FROM metrics.leaf_hour
      LEFT JOIN (SELECT * RENAME (src AS switch) FROM this) USING (cluster, switch, hour_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM access_in_bytes
  - none: SELECT cluster, switch, hour_utc, access_out_bytes, sum(bytes_estimate) AS bytes FROM metrics.leaf_hour
      LEFT JOIN (SELECT * RENAME (dst AS switch) FROM this) USING (cluster, switch, hour_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM access_out_bytes
sources: docs/metrics/matrix.md
--- */
-- Iterative proportional fitting (Deming and Stephan 1940) of a prior, in whole bytes: rows, then columns, ten times freely
-- and ten times within the bounds. Bytes that are left over go to outside, so that sums are exact.
WITH RECURSIVE refreshes AS (  -- bytes of a port's first and last refresh in the hour
    SELECT
        file_key,
        arg_min(greatest(in_bytes_raw, 0), offset_ms) AS first_in,  -- lint: allow chance because a file has one row a time
        arg_max(greatest(in_bytes_raw, 0), offset_ms) AS last_in,  -- lint: allow chance because a file has one row a time
        arg_min(greatest(out_bytes_raw, 0), offset_ms) AS first_out,  -- lint: allow chance because a file has one row a time
        arg_max(greatest(out_bytes_raw, 0), offset_ms) AS last_out  -- lint: allow chance because a file has one row a time
    FROM staging.port_readings
    WHERE in_bytes_raw <> 0 OR out_bytes_raw <> 0
    GROUP BY file_key
),

ports AS (                     -- edge: what can have moved before the hour or on the way at its end, at most 2 s at line rate each
    SELECT
        h.cluster,
        h.hour_utc,
        h.switch,
        h.port,
        h.port_class IN ('access', 'storage_access') AS is_access,
        h.port_class IN ('uplink', 'storage_uplink') AS is_uplink,
        h.in_bytes,
        h.out_bytes,
        h.line_rate_bps // 4 AS two_seconds,
        least(coalesce(r.first_in, 0), two_seconds) + least(coalesce(r.last_in, 0), two_seconds) AS in_edge,
        least(coalesce(r.first_out, 0), two_seconds) + least(coalesce(r.last_out, 0), two_seconds) AS out_edge
    FROM metrics.port_hour AS h
    JOIN staging.port_files AS f USING (cluster, switch, port, hour_utc)
    LEFT JOIN refreshes AS r ON r.file_key = f.file_key
),

leaf_edges AS (                -- an idle port has up to 416 kB of control traffic in an hour, which the switch itself sends or takes
    SELECT
        cluster,
        hour_utc,
        switch,
        coalesce(sum(in_edge) FILTER (WHERE is_access), 0) AS sent_edge,
        coalesce(sum(out_edge) FILTER (WHERE is_access), 0) AS received_edge,
        coalesce(sum(in_edge) FILTER (WHERE is_uplink), 0) AS down_edge,
        coalesce(sum(out_edge) FILTER (WHERE is_uplink), 0) AS up_edge,
        416000 * count(*) + coalesce(sum(in_bytes + out_bytes) FILTER (WHERE NOT is_access AND NOT is_uplink), 0) AS control
    FROM ports
    GROUP BY ALL
),

under_leaf AS (                -- what stays under a leaf: sent less what went up, and received less what came down; slack: how far both are off
    SELECT
        h.cluster,
        h.hour_utc,
        h.switch,
        h.access_in_bytes AS sent,
        h.access_out_bytes AS received,
        h.access_in_bytes - h.uplink_out_bytes AS by_sent,
        h.access_out_bytes - h.uplink_in_bytes AS by_received,
        greatest(0, least(by_sent - e.sent_edge, by_received - e.received_edge) - e.control) AS low,
        least(sent, received, greatest(0, by_sent + e.up_edge, by_received + e.down_edge) + e.control) AS high,
        least(high, greatest(low, (by_sent + by_received) // 2)) AS estimate,
        greatest(abs(by_sent - estimate), abs(by_received - estimate)) AS slack
    FROM metrics.leaf_hour AS h
    JOIN leaf_edges AS e USING (cluster, hour_utc, switch)
),

ways AS (                      -- bytes of each leaf to and from each spine
    SELECT
        p.cluster,
        p.hour_utc,
        p.switch,
        u.spine,
        sum(p.out_bytes) AS up,
        sum(p.in_bytes) AS down,
        sum(p.out_edge) AS up_edge,
        count(*) AS uplinks
    FROM ports AS p
    JOIN topology.hour_uplinks AS u
        ON u.cluster = p.cluster AND u.leaf = p.switch AND u.leaf_port = p.port AND u.hour_utc = p.hour_utc
    GROUP BY ALL
),

crossing AS (                  -- at least what src sent up to a spine less what all others got from it, at most the smaller of both ends
    SELECT
        a.cluster,
        a.hour_utc,
        a.switch AS src,
        b.switch AS dst,
        sum(least(a.up, b.down)) AS high,
        sum(
            CASE
                WHEN s.checkable THEN greatest(
                    0,
                    least(a.up - a.up_edge, s.to_leaf_bytes - a.down) - (s.to_leaf_bytes - a.down - b.down)
                    - abs(s.to_leaf_bytes - s.from_leaf_bytes) - 416000 * s.uplinks_seen
                )
                ELSE 0
            END
        ) AS low
    FROM ways AS a
    JOIN ways AS b ON b.cluster = a.cluster AND b.hour_utc = a.hour_utc AND b.spine = a.spine AND b.switch <> a.switch
    JOIN metrics.spine_hour AS s ON s.cluster = a.cluster AND s.hour_utc = a.hour_utc AND s.spine = a.spine
    GROUP BY ALL
),

sums AS (                      -- what leaves all leaves, and what leaves that are not loaded would have at the mean of the loaded ones
    SELECT
        u.cluster,
        u.hour_utc,
        CAST(sum(u.sent - u.estimate) AS HUGEINT) AS leaving,
        CAST(sum(u.received - u.estimate) AS HUGEINT) AS arriving,
        greatest(coalesce(max(c.leaves + c.storage_leaves) - count(*), 0), 0) AS missing,
        greatest(arriving - leaving, 0) + missing * leaving // count(*) + 1 AS from_outside,
        greatest(leaving - arriving, 0) + missing * arriving // count(*) + 1 AS to_outside
    FROM under_leaf AS u
    LEFT JOIN reference.clusters AS c ON c.cluster = u.cluster
    GROUP BY u.cluster, u.hour_utc
),

flows AS (                     -- payload of sampled packets from leaf to leaf, as in metrics.flow_pairs
    SELECT
        cluster,
        hour_utc,
        source_switch AS src,
        dest_switch AS dst,
        sum(4096 * (coalesce(read_packets, 0) + coalesce(write_packets, 0)) + 64 * coalesce(send_packets, 0)) AS weight
    FROM staging.hour_flow
    WHERE source_switch <> dest_switch
    GROUP BY ALL
),

members AS (                   -- bytes of each group of traffic on each leaf, by adapter
    SELECT
        g.cluster,
        g.hour_utc,
        g.group_id,
        o.switch,
        o.hca,
        CAST(sum(h.in_bytes) AS HUGEINT) AS sent,
        CAST(sum(h.out_bytes) AS HUGEINT) AS received
    FROM metrics.traffic_groups AS g
    JOIN topology.hour_owners AS o ON o.cluster = g.cluster AND o.server = g.server AND o.hour_utc = g.hour_utc
    JOIN metrics.port_hour AS h
        ON h.cluster = o.cluster AND h.switch = o.switch AND h.port = o.port AND h.hour_utc = o.hour_utc
    GROUP BY ALL
),

jobs AS (                      -- each group to itself, in proportion to what its leaves sent and received; rings keep rail or adapter
    SELECT
        a.cluster,
        a.hour_utc,
        a.switch AS src,
        b.switch AS dst,
        sum(
            a.sent * b.received // greatest(t.received, 1)
            * CASE WHEN a.hca = b.hca OR {{ rail('a.switch') }} = {{ rail('b.switch') }} THEN 20 ELSE 1 END
        ) AS weight
    FROM members AS a
    JOIN members AS b USING (cluster, hour_utc, group_id)
    JOIN (SELECT cluster, hour_utc, group_id, sum(received) AS received FROM members GROUP BY ALL) AS t
        USING (cluster, hour_utc, group_id)
    WHERE a.switch <> b.switch
    GROUP BY ALL
),

pairs AS (                     -- what each kind of evidence says about a pair of leaves
    SELECT
        c.cluster,
        c.hour_utc,
        c.src,
        c.dst,
        greatest(0, c.low - a.slack - b.slack) AS low,
        least(c.high, a.sent - a.low, b.received - b.low) AS high,
        CAST(a.sent - a.estimate AS HUGEINT) AS leaving,
        CAST(b.received - b.estimate AS HUGEINT) AS arriving,
        (a.sent - a.estimate) * arriving // (s.arriving + s.to_outside) AS gravity,
        CAST(coalesce(f.weight, 0) AS HUGEINT) AS flow,
        CAST(coalesce(j.weight, 0) AS HUGEINT) AS job,
        CASE
            WHEN sum(flow) OVER of_src > 0 AND sum(flow) OVER of_dst > 0 THEN 'flow'
            WHEN sum(job) OVER of_src > 0 AND sum(job) OVER of_dst > 0 THEN 'job'
            ELSE 'gravity'
        END AS evidence,
        CASE evidence WHEN 'flow' THEN flow WHEN 'job' THEN job ELSE gravity END AS weight
    FROM crossing AS c
    JOIN under_leaf AS a ON a.cluster = c.cluster AND a.hour_utc = c.hour_utc AND a.switch = c.src
    JOIN under_leaf AS b ON b.cluster = c.cluster AND b.hour_utc = c.hour_utc AND b.switch = c.dst
    JOIN sums AS s ON s.cluster = c.cluster AND s.hour_utc = c.hour_utc
    LEFT JOIN flows AS f ON f.cluster = c.cluster AND f.hour_utc = c.hour_utc AND f.src = c.src AND f.dst = c.dst
    LEFT JOIN jobs AS j ON j.cluster = c.cluster AND j.hour_utc = c.hour_utc AND j.src = c.src AND j.dst = c.dst
    WINDOW
        of_src AS (PARTITION BY c.cluster, c.hour_utc, c.src),
        of_dst AS (PARTITION BY c.cluster, c.hour_utc, c.dst)
),

cells AS (                     -- weights of one kind are scaled to what gravity gives their pairs
    SELECT
        cluster,
        hour_utc,
        src,
        dst,
        low,
        high,
        leaving,
        arriving,
        evidence,
        weight * sum(gravity) OVER of_kind // greatest(sum(weight) OVER of_kind, 1) AS prior
    FROM pairs
    WINDOW of_kind AS (PARTITION BY cluster, hour_utc, evidence)
    UNION ALL
    SELECT u.cluster, u.hour_utc, u.switch, 'outside', 0, u.sent, u.sent - u.estimate, NULL, 'gravity',
        (u.sent - u.estimate) * s.to_outside // (s.arriving + s.to_outside)
    FROM under_leaf AS u
    JOIN sums AS s USING (cluster, hour_utc)
    UNION ALL
    SELECT u.cluster, u.hour_utc, 'outside', u.switch, 0, u.received, NULL, u.received - u.estimate, 'gravity',
        (u.received - u.estimate) * s.from_outside // (s.leaving + s.from_outside)
    FROM under_leaf AS u
    JOIN sums AS s USING (cluster, hour_utc)
),

fitted AS (                    -- odd steps scale rows to what left a leaf, even steps columns to what came in; outside is free
    SELECT 0 AS step, *, prior AS bytes
    FROM cells
    UNION ALL
    SELECT
        step + 1 AS step,
        * EXCLUDE (step, bytes, target, total),
        CASE
            WHEN target IS NULL THEN bytes
            WHEN step < 20 THEN bytes * target // greatest(total, 1)
            ELSE greatest(low, least(high, bytes * target // greatest(total, 1)))
        END AS bytes
    FROM (
        SELECT
            *,
            CASE step % 2 WHEN 0 THEN leaving ELSE arriving END AS target,
            sum(bytes) OVER (PARTITION BY cluster, hour_utc, CASE step % 2 WHEN 0 THEN src ELSE dst END) AS total
        FROM fitted
        WHERE step < 40
    ) AS scaled
),

within_rows AS (               -- what a row has above its sum is taken from what is above its lower bounds
    SELECT
        * EXCLUDE (bytes),
        sum(low) OVER of_row AS least_of_row,
        low + (bytes - low) * least(leaving - least_of_row, sum(bytes - low) OVER of_row)
        // greatest(sum(bytes - low) OVER of_row, 1) AS bytes
    FROM fitted
    WHERE step = 40 AND src <> 'outside' AND dst <> 'outside'
    WINDOW of_row AS (PARTITION BY cluster, hour_utc, src)
),

inside AS (
    SELECT
        * EXCLUDE (bytes),
        sum(low) OVER of_column AS least_of_column,
        low + (bytes - low) * least(arriving - least_of_column, sum(bytes - low) OVER of_column)
        // greatest(sum(bytes - low) OVER of_column, 1) AS bytes
    FROM within_rows
    WINDOW of_column AS (PARTITION BY cluster, hour_utc, dst)
),

ends AS (                      -- both ends of the traffic inside
    SELECT cluster, hour_utc, src AS switch, true AS is_src, sum(low) AS low, sum(bytes) AS bytes, sum(high) AS high
    FROM inside
    GROUP BY ALL
    UNION ALL
    SELECT cluster, hour_utc, dst AS switch, false AS is_src, sum(low) AS low, sum(bytes) AS bytes, sum(high) AS high
    FROM inside
    GROUP BY ALL
),

whole AS (                     -- a leaf's access ports in one direction
    SELECT u.cluster, u.hour_utc, u.switch, d.is_src, u.low, u.estimate, u.high,
        CASE WHEN d.is_src THEN u.sent ELSE u.received END AS bytes,
        CASE WHEN d.is_src THEN e.sent_edge ELSE e.received_edge END AS edge
    FROM under_leaf AS u
    JOIN leaf_edges AS e USING (cluster, hour_utc, switch)
    CROSS JOIN (VALUES (true), (false)) AS d (is_src)
)

SELECT cluster, switch AS src, switch AS dst, hour_utc, low AS bytes_low, estimate AS bytes_estimate, high AS bytes_high, 'counters' AS evidence
FROM under_leaf
UNION ALL
SELECT cluster, src, dst, hour_utc, low, bytes, high, evidence
FROM inside
UNION ALL
SELECT
    w.cluster,
    CASE WHEN w.is_src THEN w.switch ELSE 'outside' END,
    CASE WHEN w.is_src THEN 'outside' ELSE w.switch END,
    w.hour_utc,
    greatest(0, w.bytes - w.edge - w.high - coalesce(e.high, 0)),
    w.bytes - w.estimate - coalesce(e.bytes, 0),
    w.bytes - w.low - coalesce(e.low, 0),
    'gravity'
FROM whole AS w
LEFT JOIN ends AS e USING (cluster, hour_utc, switch, is_src)
