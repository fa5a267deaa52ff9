/* ---
about: 'Bytes from server to server by minute where a flow table names the pair, and the rest of each server as other. Sums over rows and columns are the bytes of server_minute.'
partition: hour_utc
grain: [cluster, src, dst, minute_utc]
columns:
  cluster: VARCHAR the cluster's folder
  src: VARCHAR sending server, as in metrics.server_minute; other is every place without a pair, outside the fabric too
  dst: VARCHAR receiving server, as in metrics.server_minute; other is every place without a pair, outside the fabric too
  minute_utc: TIMESTAMP start of the minute
  hour_utc: TIMESTAMP the hour
  bytes_low: BIGINT [B] bytes that went from src to dst at least, by the counters; 0, since a window at the edge can be of either minute
  bytes_estimate: BIGINT [B] likely bytes, between the bounds
  bytes_high: BIGINT [B] bytes that went from src to dst at most, by the counters of all windows that can touch the minute
  evidence: VARCHAR what the estimate is from, flow (flow table) or counters (what a server's ports counted less its named pairs)
time: minute_utc
dimensions: [cluster, src, dst, evidence]
measures:
  bytes_estimate: sum, shown in GB
  bytes_low, bytes_high: none, shown in GB
checks:
  - bytes_estimate between bytes_low and bytes_high and bytes_low >= 0
  - evidence in ('flow', 'counters')
  - none: SELECT cluster, server, minute_utc, tx_bytes, sum(bytes_estimate) AS bytes FROM metrics.server_minute
      LEFT JOIN (SELECT * RENAME (src AS server) FROM this) USING (cluster, server, minute_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM tx_bytes
  - none: SELECT cluster, server, minute_utc, rx_bytes, sum(bytes_estimate) AS bytes FROM metrics.server_minute
      LEFT JOIN (SELECT * RENAME (dst AS server) FROM this) USING (cluster, server, minute_utc)
      GROUP BY ALL HAVING bytes IS DISTINCT FROM rx_bytes
sources: docs/metrics/matrix.md
--- */
WITH minutes AS (              -- a window that touches a minute ends within the next one, but in a gap anywhere in the hour
    SELECT
        cluster,
        server,
        minute_utc,
        hour_utc,
        tx_bytes,
        rx_bytes,
        CASE WHEN bool_or(quality = 'gap') OVER near THEN sum(tx_bytes) OVER of_hour ELSE sum(tx_bytes) OVER near END AS tx_high,
        CASE WHEN bool_or(quality = 'gap') OVER near THEN sum(rx_bytes) OVER of_hour ELSE sum(rx_bytes) OVER near END AS rx_high
    FROM metrics.server_minute
    WINDOW
        of_hour AS (PARTITION BY cluster, server, hour_utc),
        near AS (
            PARTITION BY cluster, server, hour_utc ORDER BY minute_utc
            RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND INTERVAL 1 MINUTE FOLLOWING
        )
),

named AS (                     -- pairs of the flow table from 100 MB on, both with counters
    SELECT
        f.cluster,
        f.minute_utc,
        f.hour_utc,
        f.src_server AS src,
        f.dst_server AS dst,
        CAST(f.bytes_estimate AS HUGEINT) AS bytes,
        s.tx_bytes,
        d.rx_bytes,
        least(s.tx_high, d.rx_high) AS high,
        greatest(sum(bytes) OVER (PARTITION BY f.cluster, f.minute_utc, f.src_server), s.tx_bytes) AS bytes_of_src,
        greatest(sum(bytes) OVER (PARTITION BY f.cluster, f.minute_utc, f.dst_server), d.rx_bytes) AS bytes_of_dst
    FROM metrics.flow_pairs AS f
    JOIN minutes AS s ON s.cluster = f.cluster AND s.server = f.src_server AND s.minute_utc = f.minute_utc
    JOIN minutes AS d ON d.cluster = f.cluster AND d.server = f.dst_server AND d.minute_utc = f.minute_utc
    WHERE f.bytes_estimate >= 100000000 AND f.src_server <> f.dst_server
),

pairs AS (                     -- scaled down where flows have more bytes than the counters of one end
    SELECT
        cluster,
        src,
        dst,
        minute_utc,
        hour_utc,
        least(bytes * tx_bytes // bytes_of_src, bytes * rx_bytes // bytes_of_dst) AS bytes,
        high
    FROM named
),

sides AS (                     -- each server as sender and as receiver, with its named pairs
    SELECT cluster, server, minute_utc, hour_utc, true AS sends, tx_bytes AS rest, tx_high AS high
    FROM minutes
    UNION ALL
    SELECT cluster, server, minute_utc, hour_utc, false AS sends, rx_bytes AS rest, rx_high AS high
    FROM minutes
    UNION ALL
    SELECT cluster, src AS server, minute_utc, hour_utc, true AS sends, -bytes AS rest, 0 AS high
    FROM pairs
    UNION ALL
    SELECT cluster, dst AS server, minute_utc, hour_utc, false AS sends, -bytes AS rest, 0 AS high
    FROM pairs
)

SELECT cluster, src, dst, minute_utc, hour_utc, 0 AS bytes_low, bytes AS bytes_estimate, high AS bytes_high, 'flow' AS evidence
FROM pairs
UNION ALL
SELECT
    cluster,
    CASE WHEN sends THEN server ELSE 'other' END AS src,
    CASE WHEN sends THEN 'other' ELSE server END AS dst,
    minute_utc,
    hour_utc,
    0 AS bytes_low,
    sum(rest) AS bytes_estimate,
    sum(high) AS bytes_high,
    'counters' AS evidence
FROM sides
GROUP BY cluster, server, sends, minute_utc, hour_utc
