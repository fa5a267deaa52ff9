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
        cluster, server, minute_utc, hour_utc, tx_bytes, rx_bytes,
        bool_or(quality = 'gap') OVER near AS is_gap,
        CASE WHEN is_gap THEN sum(tx_bytes) OVER of_hour ELSE sum(tx_bytes) OVER near END AS tx_high,
        CASE WHEN is_gap THEN sum(rx_bytes) OVER of_hour ELSE sum(rx_bytes) OVER near END AS rx_high
    FROM metrics.server_minute
    WINDOW
        of_hour AS (PARTITION BY cluster, server, hour_utc),
        near AS (
            PARTITION BY cluster, server, hour_utc ORDER BY minute_utc
            RANGE BETWEEN INTERVAL 1 MINUTE PRECEDING AND INTERVAL 1 MINUTE FOLLOWING
        )
),

pairs AS (                     -- of the flow table from 100 MB on (docs/metrics/matrix.md, Limits), both with counters; scaled down where flows have more bytes than one end
    SELECT
        f.cluster, f.src_server AS src, f.dst_server AS dst, f.minute_utc, f.hour_utc,
        CAST(f.bytes_estimate AS HUGEINT) AS named,
        least(
            named * s.tx_bytes // greatest(sum(named) OVER (PARTITION BY f.cluster, f.minute_utc, f.src_server), s.tx_bytes),
            named * d.rx_bytes // greatest(sum(named) OVER (PARTITION BY f.cluster, f.minute_utc, f.dst_server), d.rx_bytes)
        ) AS bytes,
        least(s.tx_high, d.rx_high) AS high
    FROM metrics.flow_pairs AS f
    JOIN minutes AS s ON s.cluster = f.cluster AND s.server = f.src_server AND s.minute_utc = f.minute_utc  -- filter
    JOIN minutes AS d ON d.cluster = f.cluster AND d.server = f.dst_server AND d.minute_utc = f.minute_utc  -- filter
    WHERE f.bytes_estimate >= 100000000 AND f.src_server <> f.dst_server
),

sides AS (                     -- each server as sender and as receiver, less its named pairs
    SELECT
        cluster, server, minute_utc, hour_utc,
        unnest([true, false]) AS sends, unnest([tx_bytes, rx_bytes]) AS rest, unnest([tx_high, rx_high]) AS high
    FROM minutes
    UNION ALL
    SELECT cluster, unnest([src, dst]) AS server, minute_utc, hour_utc, unnest([true, false]) AS sends, -bytes, 0
    FROM pairs
)

SELECT cluster, src, dst, minute_utc, hour_utc, 0 AS bytes_low, bytes AS bytes_estimate, high AS bytes_high, 'flow' AS evidence
FROM pairs
UNION ALL
SELECT cluster, if(sends, server, 'other'), if(sends, 'other', server), minute_utc, hour_utc, 0, sum(rest), sum(high), 'counters'
FROM sides
GROUP BY cluster, server, sends, minute_utc, hour_utc
