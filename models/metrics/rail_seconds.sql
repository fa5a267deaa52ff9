/* ---
about: Bytes per second of each rail of a server that moved at least 1 GB in the hour, one list per rail. Compact input for time-series models; metrics.nic_second has one row per second, and all servers.
partition: hour_utc
detail: true
grain: [cluster, server, hour_utc, rail]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR owner of the ports, as in topology.hour_owners
  hour_utc: TIMESTAMP the hour
  rail: INTEGER [1] place of the leaf among the loaded leaves of its group, from 1
  switch: VARCHAR the rail's leaf
  seconds: INTEGER[] seconds of the hour that a window of the rail's ports overlaps
  bytes: BIGINT[] bytes received and sent in each of these seconds
  gap_seconds: INTEGER[] seconds that a window of more than 10 s overlaps
time: hour_utc
dimensions: [cluster, server, rail, switch]
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
        o.file_key,
        r.rail
    FROM topology.hour_owners AS o
    JOIN ranked AS r USING (cluster, switch, hour_utc)
    JOIN metrics.server_hour AS h USING (cluster, server, hour_utc)
    WHERE h.rx_bytes + h.tx_bytes >= 1000000000
),

rails AS (                     -- an integer for each rail and hour; names are joined after summing
    SELECT cluster, server, hour_utc, rail, min(switch) AS switch, min(file_key) AS rail_key
    FROM busy
    GROUP BY cluster, server, hour_utc, rail
),

ports AS (
    SELECT b.file_key, r.rail_key
    FROM busy AS b
    JOIN rails AS r USING (cluster, server, hour_utc, rail)
),

moved AS (
    SELECT
        p.rail_key,
        s.second,
        sum(s.in_bytes + s.out_bytes)::BIGINT AS bytes,
        max(s.longest_ms) AS longest_ms
    FROM staging.port_seconds AS s
    JOIN ports AS p USING (file_key)
    GROUP BY ALL
),

series AS (
    SELECT
        rail_key,
        list(second ORDER BY second) AS seconds,
        list(bytes ORDER BY second) AS bytes,
        coalesce(list(second ORDER BY second) FILTER (WHERE longest_ms > 10000), []) AS gap_seconds
    FROM moved
    GROUP BY rail_key
)

SELECT
    r.cluster,
    r.server,
    r.hour_utc,
    r.rail,
    r.switch,
    s.seconds,
    s.bytes,
    s.gap_seconds
FROM series AS s
JOIN rails AS r USING (rail_key)
