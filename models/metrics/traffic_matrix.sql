/* ---
about: 'Bytes from server to server in one hour where a flow table names the pair, and the rest of each server as other. The sum of a server''s rows is what server_hour says that it sent, the sum over its columns what it received.'
partition: hour_utc
grain: [cluster, src, dst, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  src: VARCHAR sending server, as in metrics.server_hour; other stands for every end that the flow table does not name, so never add its rows to its columns
  dst: VARCHAR receiving server, as in metrics.server_hour; other as in src
  hour_utc: TIMESTAMP the hour
  bytes_low: BIGINT [B] bytes that went from src to dst at least, by the counters
  bytes_estimate: BIGINT [B] likely bytes, between the bounds
  bytes_high: BIGINT [B] bytes that went from src to dst at most, by the counters
  evidence: VARCHAR what the estimate is from, flow (flow table) or counters (what a server's ports counted less its named pairs)
time: hour_utc
dimensions: [cluster, src, dst, evidence]
measures:
  bytes_estimate: sum, shown in TB
  bytes_low, bytes_high: none, shown in TB
checks:
  - bytes_estimate between bytes_low and bytes_high and bytes_low >= 0
  - evidence in ('flow', 'counters')
  - none: SELECT cluster, server, hour_utc, tx_bytes, sum(bytes_estimate) AS bytes FROM metrics.server_hour
      LEFT JOIN (SELECT * RENAME (src AS server) FROM this) USING (cluster, server, hour_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM tx_bytes
  - none: SELECT cluster, server, hour_utc, rx_bytes, sum(bytes_estimate) AS bytes FROM metrics.server_hour
      LEFT JOIN (SELECT * RENAME (dst AS server) FROM this) USING (cluster, server, hour_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM rx_bytes
sources: docs/metrics/matrix.md
--- */
WITH server_leaves AS (        -- what a server sent (in, seen from the switch) and received on a leaf; of the leaf: the most that left it, and what all its servers received
    SELECT
        o.cluster, o.hour_utc, o.server, o.switch,
        sum(h.in_bytes) AS sent, sum(h.out_bytes) AS received,
        max(l.access_in_bytes - m.bytes_low) AS most_leaving,  -- one value a leaf
        max(l.access_out_bytes) AS received_of_all
    FROM topology.hour_owners AS o
    JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)  -- whole
    JOIN metrics.leaf_hour AS l USING (cluster, switch, hour_utc)  -- whole
    JOIN metrics.leaf_matrix AS m  -- whole
        ON m.cluster = o.cluster AND m.src = o.switch AND m.dst = o.switch AND m.hour_utc = o.hour_utc
    GROUP BY ALL
),

named AS (                     -- pairs of the flow table whose two ends have counters; flow_pairs has scaled them to the sender's counters
    SELECT
        f.cluster, f.hour_utc, f.src_server AS src, f.dst_server AS dst, s.tx_bytes, d.rx_bytes,
        CAST(sum(f.bytes_estimate) AS HUGEINT) AS bytes
    FROM metrics.flow_pairs AS f
    -- filter
    JOIN metrics.server_hour AS s ON s.cluster = f.cluster AND s.server = f.src_server AND s.hour_utc = f.hour_utc
    -- filter
    JOIN metrics.server_hour AS d ON d.cluster = f.cluster AND d.server = f.dst_server AND d.hour_utc = f.hour_utc
    WHERE f.bytes_estimate > 0 AND f.src_server <> f.dst_server
    GROUP BY ALL
),

proven AS (                    -- on a leaf of both: what src sent and cannot have left (at most what others received), less what third servers received
    SELECT
        n.cluster, n.hour_utc, n.src, n.dst,
        sum(greatest(0, least(a.sent - a.most_leaving, a.received_of_all - a.received)
            - (a.received_of_all - a.received - b.received))) AS at_least
    FROM named AS n
    JOIN server_leaves AS a ON a.cluster = n.cluster AND a.hour_utc = n.hour_utc AND a.server = n.src  -- filter
    -- filter
    JOIN server_leaves AS b ON b.cluster = n.cluster AND b.hour_utc = n.hour_utc AND b.server = n.dst AND b.switch = a.switch
    GROUP BY ALL
),

pairs AS (                     -- pairs share what a counter has above their lower bounds in proportion to their flows, which are never scaled up to fill it; rounded down
    SELECT
        n.cluster, n.hour_utc, n.src, n.dst,
        coalesce(p.at_least, 0) AS low,
        low + least(
            n.bytes * (n.tx_bytes - sum(low) OVER of_src) // greatest(sum(n.bytes) OVER of_src, n.tx_bytes, 1),
            n.bytes * (n.rx_bytes - sum(low) OVER of_dst) // greatest(sum(n.bytes) OVER of_dst, n.rx_bytes, 1)
        ) AS estimate,
        least(n.tx_bytes, n.rx_bytes) AS high
    FROM named AS n
    LEFT JOIN proven AS p USING (cluster, hour_utc, src, dst)  -- once
    WINDOW
        of_src AS (PARTITION BY n.cluster, n.hour_utc, n.src),
        of_dst AS (PARTITION BY n.cluster, n.hour_utc, n.dst)
),

sides AS (                     -- each server as sender and as receiver, less its named pairs: at least what their upper bounds leave, at most what their lower bounds leave
    SELECT cluster, hour_utc, server, unnest([true, false]) AS sends, unnest([tx_bytes, rx_bytes]) AS low, low AS estimate, low AS high
    FROM metrics.server_hour
    UNION ALL
    SELECT cluster, hour_utc, unnest([src, dst]) AS server, unnest([true, false]) AS sends, -high, -estimate, -low
    FROM pairs
)

SELECT cluster, src, dst, hour_utc, low AS bytes_low, estimate AS bytes_estimate, high AS bytes_high, 'flow' AS evidence
FROM pairs
UNION ALL
SELECT cluster, if(sends, server, 'other'), if(sends, 'other', server), hour_utc,
    greatest(0, sum(low)), sum(estimate), sum(high), 'counters'
FROM sides
GROUP BY cluster, hour_utc, server, sends
