/* ---
about: Bytes per second of each server that moved at least 1 GB in the hour, summed over NICs and directions. Compact input for time-series models; metrics.nic_second has NICs, directions and all servers.
partition: hour_utc
detail: true
grain: [cluster, server, hour_utc, second]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR owner of the ports, as in topology.hour_owners
  hour_utc: TIMESTAMP the hour
  second: INTEGER [s] second of the hour
  bytes: BIGINT [B] bytes received and sent
  longest_ms: INTEGER [ms] longest window of any of its NICs that overlaps the second
time: hour_utc
dimensions: [cluster, server]
measures:
  bytes: sum, shown in GB
  longest_ms: max
checks:
  - bytes >= 0 and second between 0 and 3599
  # all bytes of servers that moved 1 GB, no bytes of other servers
  - none: WITH moved AS (SELECT cluster, server, hour_utc, sum(bytes) AS bytes FROM this GROUP BY cluster, server, hour_utc)
      SELECT cluster, server, h.rx_bytes + h.tx_bytes AS expected, m.bytes
      FROM metrics.server_hour AS h LEFT JOIN moved AS m USING (cluster, server, hour_utc)
      WHERE m.bytes IS DISTINCT FROM CASE WHEN h.rx_bytes + h.tx_bytes >= 1000000000 THEN h.rx_bytes + h.tx_bytes END
sources: docs/metrics/periods.md
--- */
WITH busy AS (                 -- ports of servers that moved at least 1 GB
    SELECT
        o.cluster,
        o.server,
        o.hour_utc,
        o.file_key
    FROM topology.hour_owners AS o
    JOIN metrics.server_hour AS h USING (cluster, server, hour_utc)
    WHERE h.rx_bytes + h.tx_bytes >= 1000000000
),

numbered AS (                  -- an integer for each server and hour; names are joined after summing
    SELECT cluster, server, hour_utc, min(file_key) AS server_key
    FROM busy
    GROUP BY ALL
),

ports AS (
    SELECT b.file_key, n.server_key
    FROM busy AS b
    JOIN numbered AS n USING (cluster, server, hour_utc)
),

moved AS (
    SELECT
        p.server_key,
        s.second,
        sum(s.in_bytes + s.out_bytes) AS bytes,
        max(s.longest_ms) AS longest_ms
    FROM staging.port_seconds AS s
    JOIN ports AS p USING (file_key)
    GROUP BY ALL
)

SELECT
    n.cluster,
    n.server,
    n.hour_utc,
    m.second,
    m.bytes,
    m.longest_ms
FROM moved AS m
JOIN numbered AS n USING (server_key)
