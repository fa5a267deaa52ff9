/* ---
about: Bytes per second of each port of a server that moved at least 1 GB in the hour, one list per port. Compact input for time-series models; metrics.nic_second has one row per second, and all servers.
partition: hour_utc
grain: [cluster, server, hour_utc, rail, switch, port]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR owner of the ports, as in topology.hour_owners
  hour_utc: TIMESTAMP the hour
  rail: INTEGER [1] place of the leaf among the loaded leaves of its group, from 1
  switch: VARCHAR the rail's leaf
  port: VARCHAR access port of the leaf, full name; an owner that stands for two servers has two
  seconds: INTEGER[] seconds of the hour that a window of the port overlaps
  bytes: BIGINT[] bytes received and sent in each of these seconds
  gap_seconds: INTEGER[] seconds that a window of more than 10 s overlaps
time: hour_utc
dimensions: [cluster, server, rail, switch, port]
checks:
  - rail >= 1 and len(bytes) = len(seconds)
  # all bytes of servers that moved 1 GB, no bytes of other servers
  - none: WITH moved AS (SELECT cluster, server, hour_utc, sum(list_sum(bytes))::BIGINT AS bytes FROM this GROUP BY cluster, server, hour_utc)
      SELECT cluster, server, h.rx_bytes + h.tx_bytes AS expected, m.bytes
      FROM metrics.server_hour AS h LEFT JOIN moved AS m USING (cluster, server, hour_utc)
      WHERE m.bytes IS DISTINCT FROM CASE WHEN h.rx_bytes + h.tx_bytes >= 1000000000 THEN h.rx_bytes + h.tx_bytes END
sources: docs/metrics/periods.md
--- */
WITH ranked AS (               -- loaded leaves of each group of leaves, in order
    SELECT
        cluster,
        switch,
        hour_utc,
        row_number() OVER (PARTITION BY cluster, hour_utc, {{ leaf_group('switch') }} ORDER BY {{ rail('switch') }}, switch) AS rail
    FROM topology.hour_owners
    GROUP BY cluster, switch, hour_utc
),

busy AS (                      -- ports of servers that moved at least 1 GB
    SELECT
        o.cluster,
        o.server,
        o.hour_utc,
        o.switch,
        o.port,
        o.file_key,
        r.rail
    FROM topology.hour_owners AS o
    JOIN ranked AS r USING (cluster, switch, hour_utc)  -- check
    JOIN metrics.server_hour AS h USING (cluster, server, hour_utc)  -- check
    WHERE h.rx_bytes + h.tx_bytes >= 1000000000
),

series AS (
    SELECT
        s.file_key,
        list(s.second ORDER BY s.second) AS seconds,
        list(s.in_bytes + s.out_bytes ORDER BY s.second) AS bytes,
        coalesce(list(s.second ORDER BY s.second) FILTER (WHERE s.longest_ms > 10000), []) AS gap_seconds
    FROM staging.port_seconds AS s
    SEMI JOIN busy AS b USING (file_key)  -- check
    GROUP BY s.file_key
)

SELECT
    b.cluster,
    b.server,
    b.hour_utc,
    b.rail,
    b.switch,
    b.port,
    s.seconds,
    s.bytes,
    s.gap_seconds
FROM series AS s
JOIN busy AS b USING (file_key)  -- check
