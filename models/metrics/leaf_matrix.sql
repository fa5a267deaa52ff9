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
  evidence: VARCHAR what the estimate starts from, counters (the leaf's own ports say it), flow (flow table), ring (rings in logs of the hour), job (groups of traffic) or gravity (sums alone)
  pattern: VARCHAR to which NICs those of the groups of traffic are taken to send, log (the next in a ring of the log), place (the same place in other leaf groups), adapter (the same adapter) or all, with plus signs between those of several groups; NULL where no group says so
time: hour_utc
dimensions: [cluster, src, dst, evidence, pattern]
measures:
  bytes_estimate: sum, shown in TB
  bytes_low, bytes_high: none, shown in TB
checks:
  - bytes_estimate between bytes_low and bytes_high and bytes_low >= 0
  - evidence in ('counters', 'flow', 'ring', 'job', 'gravity')
  - evidence in ('ring', 'job') or pattern is null
  # what a leaf's servers sent and received, to the byte
  - none: SELECT cluster, switch, hour_utc, access_in_bytes, sum(bytes_estimate) AS bytes FROM metrics.leaf_hour
      LEFT JOIN (SELECT * RENAME (src AS switch) FROM this) USING (cluster, switch, hour_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM access_in_bytes
  - none: SELECT cluster, switch, hour_utc, access_out_bytes, sum(bytes_estimate) AS bytes FROM metrics.leaf_hour
      LEFT JOIN (SELECT * RENAME (dst AS switch) FROM this) USING (cluster, switch, hour_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM access_out_bytes
sources: docs/metrics/matrix.md
--- */
-- Iterative proportional fitting (Deming and Stephan 1940) of a prior, in whole bytes and within the bounds: rows, then
-- columns, twenty times. Bytes that are left over go to outside, so that sums are exact.
WITH RECURSIVE refreshes AS (  -- bytes of a port's first and last refresh in the hour
    SELECT
        file_key,
        arg_min([in_bytes_raw, out_bytes_raw], offset_ms) AS first,  -- lint: allow chance because a file has one row a time
        arg_max([in_bytes_raw, out_bytes_raw], offset_ms) AS last  -- lint: allow chance because a file has one row a time
    FROM staging.port_readings
    WHERE in_bytes_raw <> 0 OR out_bytes_raw <> 0
    GROUP BY file_key
),

ports AS (                     -- edge: what can have moved before the hour or on the way at its end, at most 2 s at line rate each
    SELECT
        h.cluster, h.hour_utc, h.switch, h.port, h.in_bytes, h.out_bytes,
        CASE WHEN contains(h.port_class, 'access') THEN 'access' WHEN contains(h.port_class, 'uplink') THEN 'uplink' ELSE 'other' END AS side,
        h.line_rate_bps // 4 AS two_seconds,
        coalesce(least(greatest(r.first[1], 0), two_seconds) + least(greatest(r.last[1], 0), two_seconds), 0) AS in_edge,
        coalesce(least(greatest(r.first[2], 0), two_seconds) + least(greatest(r.last[2], 0), two_seconds), 0) AS out_edge
    FROM metrics.port_hour AS h
    JOIN staging.port_files AS f USING (cluster, switch, port, hour_utc)  -- check, whole
    LEFT JOIN refreshes AS r ON r.file_key = f.file_key  -- once
),

leaf_edges AS (                -- an idle port has up to 416 kB of control traffic in an hour, which the switch itself sends or takes
    SELECT
        cluster, hour_utc, switch,
        coalesce(sum(in_edge) FILTER (WHERE side = 'access'), 0) AS sent_edge,
        coalesce(sum(out_edge) FILTER (WHERE side = 'access'), 0) AS received_edge,
        coalesce(sum(in_edge) FILTER (WHERE side = 'uplink'), 0) AS down_edge,
        coalesce(sum(out_edge) FILTER (WHERE side = 'uplink'), 0) AS up_edge,
        416000 * count(*) + coalesce(sum(in_bytes + out_bytes) FILTER (WHERE side = 'other'), 0) AS control
    FROM ports
    GROUP BY ALL
),

under_leaf AS (                -- what stays under a leaf: sent less what went up, and received less what came down; slack: how far both are off;
    -- missing: leaves that are not loaded, which are taken to send and get from outside as much as the mean of the loaded ones
    SELECT
        h.cluster, h.hour_utc, h.switch, e.sent_edge, e.received_edge,
        h.access_in_bytes AS sent, h.access_in_bytes - h.uplink_out_bytes AS by_sent,
        h.access_out_bytes AS received, h.access_out_bytes - h.uplink_in_bytes AS by_received,
        greatest(0, least(by_sent - e.sent_edge, by_received - e.received_edge) - e.control) AS low,
        least(sent, received, greatest(0, by_sent + e.up_edge, by_received + e.down_edge) + e.control) AS high,
        least(high, greatest(low, (by_sent + by_received) // 2)) AS estimate,
        greatest(abs(by_sent - estimate), abs(by_received - estimate)) AS slack,
        sum(sent - estimate) OVER of_hour AS all_leaving,
        sum(received - estimate) OVER of_hour AS all_arriving,
        greatest(coalesce(c.leaves + c.storage_leaves - count(*) OVER of_hour, 0), 0) AS missing,
        greatest(all_arriving - all_leaving, 0) + missing * all_leaving // count(*) OVER of_hour + 1 AS from_outside,
        greatest(all_leaving - all_arriving, 0) + missing * all_arriving // count(*) OVER of_hour + 1 AS to_outside
    FROM metrics.leaf_hour AS h
    JOIN leaf_edges AS e USING (cluster, hour_utc, switch)  -- check, whole
    LEFT JOIN reference.clusters AS c USING (cluster)  -- once
    WINDOW of_hour AS (PARTITION BY h.cluster, h.hour_utc)
),

ways AS (                      -- bytes of each leaf to and from each spine
    SELECT
        p.cluster, p.hour_utc, p.switch, u.spine,
        sum(p.out_bytes) AS up, sum(p.in_bytes) AS down, sum(p.out_edge) AS up_edge
    FROM ports AS p
    JOIN topology.hour_uplinks AS u  -- filter
        ON u.cluster = p.cluster AND u.leaf = p.switch AND u.leaf_port = p.port AND u.hour_utc = p.hour_utc
    GROUP BY ALL
),

crossing AS (                  -- at least what src sent up to a spine less what all others got from it, at most the smaller of both ends
    SELECT
        a.cluster, a.hour_utc, a.switch AS src, b.switch AS dst,
        sum(least(a.up, b.down)) AS high,
        sum(if(s.checkable, greatest(
            0,
            least(a.up - a.up_edge, s.to_leaf_bytes - a.down) - (s.to_leaf_bytes - a.down - b.down)
            - abs(s.to_leaf_bytes - s.from_leaf_bytes) - 416000 * s.uplinks_seen
        ), 0)) AS low
    FROM ways AS a
    -- filter
    JOIN ways AS b ON b.cluster = a.cluster AND b.hour_utc = a.hour_utc AND b.spine = a.spine AND b.switch <> a.switch
    JOIN metrics.spine_hour AS s ON s.cluster = a.cluster AND s.hour_utc = a.hour_utc AND s.spine = a.spine  -- whole
    GROUP BY ALL
),

flows AS (                     -- payload of sampled packets from leaf to leaf, as in metrics.flow_pairs
    SELECT
        cluster, hour_utc, source_switch AS src, dest_switch AS dst,
        sum(4096 * (coalesce(read_packets, 0) + coalesce(write_packets, 0)) + 64 * coalesce(send_packets, 0)) AS weight
    FROM staging.hour_flow
    WHERE source_switch <> dest_switch
    GROUP BY ALL
),

nics AS (                      -- NICs of each group of traffic, without those under a tenth of its busiest one
    SELECT
        g.cluster, g.hour_utc, g.group_id, o.server, o.switch, o.port, o.hca,
        {{ rail('o.switch') }} AS place,
        CAST(h.in_bytes AS HUGEINT) AS sent, CAST(h.out_bytes AS HUGEINT) AS received
    FROM metrics.traffic_groups AS g
    JOIN topology.hour_owners AS o USING (cluster, server, hour_utc)  -- whole
    JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)  -- whole
    QUALIFY {{ uses_rail('(h.in_bytes + h.out_bytes)', '(PARTITION BY g.cluster, g.hour_utc, g.group_id)') }}
),

edges AS (                     -- edges of rings, in logs that overlap the hour
    SELECT r.cluster, h.hour_utc, r.src_server, r.src_switch, r.dst_server, r.dst_switch, count(*) AS edges
    FROM topology.rank_paths AS r
    -- filter
    JOIN (SELECT cluster, task, min(time_utc) AS begin, max(time_utc) AS until FROM staging.log_events GROUP BY ALL) AS t
        ON t.cluster = r.cluster AND t.task = r.task
    JOIN metrics.leaf_hour AS h ON h.cluster = r.cluster AND h.switch = r.src_switch  -- filter
    WHERE r.kind = 'ring' AND t.begin < h.hour_utc + INTERVAL 1 HOUR AND t.until > h.hour_utc
    GROUP BY ALL
),

talks AS (                     -- what each NIC would send to those of other servers of its group, by pattern
    SELECT
        a.cluster, a.hour_utc, a.group_id, p.pattern, a.switch AS src, b.switch AS dst, b.port,
        CASE p.pattern WHEN 'log' THEN e.edges ELSE 1 END AS part,
        a.sent * part // sum(part) OVER (PARTITION BY a.cluster, a.hour_utc, a.group_id, p.pattern, a.switch, a.port) AS bytes
    FROM nics AS a
    JOIN nics AS b ON b.cluster = a.cluster AND b.hour_utc = a.hour_utc AND b.group_id = a.group_id  -- filter
    LEFT JOIN edges AS e  -- once
        ON e.cluster = a.cluster AND e.hour_utc = a.hour_utc AND e.src_server = a.server AND e.src_switch = a.switch
        AND e.dst_server = b.server AND e.dst_switch = b.switch
    CROSS JOIN (VALUES ('log'), ('place'), ('adapter'), ('all')) AS p (pattern)  -- filter, count
    WHERE
        (a.server <> b.server OR (a.switch = b.switch AND a.port <> b.port))
        AND CASE p.pattern WHEN 'log' THEN e.edges > 0 WHEN 'place' THEN a.place = b.place WHEN 'adapter' THEN a.hca = b.hca ELSE true END
),

misses AS (                    -- by pattern less as counted: what each NIC received, and what a leaf would keep if each job kept its mean
    SELECT cluster, hour_utc, group_id, pattern, dst AS switch, port, bytes
    FROM talks
    UNION ALL
    SELECT cluster, hour_utc, group_id, pattern, src, NULL, bytes
    FROM talks
    WHERE src = dst
    UNION ALL
    SELECT
        n.cluster, n.hour_utc, n.group_id, p.pattern, n.switch,
        unnest([n.port, NULL]), unnest([-n.received, -(n.sent * u.estimate // greatest(u.sent, 1))])
    FROM nics AS n
    JOIN under_leaf AS u ON u.cluster = n.cluster AND u.hour_utc = n.hour_utc AND u.switch = n.switch  -- whole
    JOIN (SELECT DISTINCT cluster, hour_utc, group_id, pattern FROM talks) AS p  -- whole
        ON p.cluster = n.cluster AND p.hour_utc = n.hour_utc AND p.group_id = n.group_id
),

fits AS (                      -- the rings of a log, else the patterns with the least misses
    SELECT cluster, hour_utc, group_id, pattern, sum(abs(bytes)) AS missed
    FROM (SELECT * REPLACE (sum(bytes) AS bytes) FROM misses GROUP BY ALL) AS net
    GROUP BY cluster, hour_utc, group_id, pattern
    QUALIFY rank() OVER (PARTITION BY cluster, hour_utc, group_id ORDER BY pattern <> 'log', missed) = 1
),

jobs AS (                      -- each group to itself: 20 parts by its pattern, one part to all
    SELECT
        t.cluster, t.hour_utc, t.src, t.dst,
        sum(CASE WHEN t.pattern = f.pattern THEN 20 * t.bytes // f.patterns WHEN t.pattern = 'all' THEN t.bytes ELSE 0 END) AS weight,
        sum(CASE WHEN f.pattern = 'log' THEN 20 * t.bytes ELSE 0 END) AS by_ring,
        string_agg(DISTINCT f.pattern, '+' ORDER BY f.pattern) AS pattern
    FROM talks AS t
    LEFT JOIN (SELECT *, count(*) OVER (PARTITION BY cluster, hour_utc, group_id) AS patterns FROM fits) AS f  -- once
        ON f.cluster = t.cluster AND f.hour_utc = t.hour_utc AND f.group_id = t.group_id AND f.pattern = t.pattern
    WHERE t.src <> t.dst
    GROUP BY ALL
),

pairs AS (                     -- what each kind of evidence says about a pair of leaves
    SELECT
        c.cluster, c.hour_utc, c.src, c.dst,
        greatest(0, c.low - a.slack - b.slack) AS low,
        least(c.high, a.sent - a.low, b.received - b.low) AS high,
        CAST(a.sent - a.estimate AS HUGEINT) AS leaving,
        CAST(b.received - b.estimate AS HUGEINT) AS arriving,
        leaving * arriving // (a.all_arriving + a.to_outside) AS gravity,
        CAST(coalesce(f.weight, 0) AS HUGEINT) AS flow,
        CAST(coalesce(j.weight, 0) AS HUGEINT) AS job,
        CASE
            WHEN sum(flow) OVER of_src > 0 AND sum(flow) OVER of_dst > 0 THEN 'flow'
            WHEN sum(job) OVER of_src > 0 AND sum(job) OVER of_dst > 0 THEN 'job'
            ELSE 'gravity'
        END AS kind,
        CASE WHEN kind = 'job' AND 2 * j.by_ring > job THEN 'ring' ELSE kind END AS evidence,
        CASE kind WHEN 'job' THEN j.pattern END AS pattern,
        CASE kind WHEN 'flow' THEN flow WHEN 'job' THEN job ELSE gravity END AS weight
    FROM crossing AS c
    JOIN under_leaf AS a ON a.cluster = c.cluster AND a.hour_utc = c.hour_utc AND a.switch = c.src  -- whole
    JOIN under_leaf AS b ON b.cluster = c.cluster AND b.hour_utc = c.hour_utc AND b.switch = c.dst  -- whole
    -- once
    LEFT JOIN flows AS f ON f.cluster = c.cluster AND f.hour_utc = c.hour_utc AND f.src = c.src AND f.dst = c.dst
    -- once
    LEFT JOIN jobs AS j ON j.cluster = c.cluster AND j.hour_utc = c.hour_utc AND j.src = c.src AND j.dst = c.dst
    WINDOW
        of_src AS (PARTITION BY c.cluster, c.hour_utc, c.src),
        of_dst AS (PARTITION BY c.cluster, c.hour_utc, c.dst)
),

cells AS (                     -- weights of one kind are scaled to what gravity gives their pairs
    SELECT
        cluster, hour_utc, src, dst, low, high, leaving, arriving, evidence, pattern,
        weight * sum(gravity) OVER of_kind // greatest(sum(weight) OVER of_kind, 1) AS prior
    FROM pairs
    WINDOW of_kind AS (PARTITION BY cluster, hour_utc, kind)
    UNION ALL
    SELECT cluster, hour_utc, switch, 'outside', 0, sent, sent - estimate, NULL, 'gravity', NULL,
        (sent - estimate) * to_outside // (all_arriving + to_outside)
    FROM under_leaf
    UNION ALL
    SELECT cluster, hour_utc, 'outside', switch, 0, received, NULL, received - estimate, 'gravity', NULL,
        (received - estimate) * from_outside // (all_leaving + from_outside)
    FROM under_leaf
),

fitted AS (                    -- odd steps scale rows to what left a leaf, even steps columns to what came in; outside is free
    SELECT 0 AS step, *, prior AS bytes
    FROM cells
    UNION ALL
    SELECT
        step + 1,
        * EXCLUDE (step, bytes),
        if('outside' = if(step % 2 = 0, src, dst), bytes, greatest(low, least(
            high, bytes * if(step % 2 = 0, leaving, arriving) // greatest(sum(bytes) OVER of_side, 1)
        )))
    FROM fitted
    WHERE step < 40
    WINDOW of_side AS (PARTITION BY cluster, hour_utc, if(step % 2 = 0, src, dst))
),

inside AS (                    -- what a row or column has above its sum is taken from what is above its lower bounds
    SELECT
        * EXCLUDE (bytes),
        sum(bytes - low) OVER of_row AS row_bytes,
        sum(bytes - low) OVER of_column AS column_bytes,
        low + least(
            (bytes - low) * least(leaving - sum(low) OVER of_row, row_bytes) // greatest(row_bytes, 1),
            (bytes - low) * least(arriving - sum(low) OVER of_column, column_bytes) // greatest(column_bytes, 1)
        ) AS bytes
    FROM fitted
    WHERE step = 40 AND src <> 'outside' AND dst <> 'outside'
    WINDOW
        of_row AS (PARTITION BY cluster, hour_utc, src),
        of_column AS (PARTITION BY cluster, hour_utc, dst)
),

sides AS (                     -- each leaf as sender and as receiver, less what its leaf and its pairs have
    SELECT
        cluster, hour_utc, switch,
        unnest([true, false]) AS sends,
        unnest([sent - sent_edge, received - received_edge]) - high AS at_least,
        unnest([sent, received]) - estimate AS bytes,
        unnest([sent, received]) - low AS at_most
    FROM under_leaf
    UNION ALL
    SELECT cluster, hour_utc, unnest([src, dst]), unnest([true, false]), -high, -bytes, -low
    FROM inside
)

SELECT cluster, switch AS src, switch AS dst, hour_utc, low AS bytes_low, estimate AS bytes_estimate, high AS bytes_high,
    'counters' AS evidence, NULL AS pattern
FROM under_leaf
UNION ALL
SELECT cluster, src, dst, hour_utc, low, bytes, high, evidence, pattern
FROM inside
UNION ALL
SELECT cluster, if(sends, switch, 'outside'), if(sends, 'outside', switch), hour_utc,
    greatest(0, sum(at_least)), sum(bytes), sum(at_most), 'gravity', NULL
FROM sides
GROUP BY cluster, hour_utc, switch, sends
