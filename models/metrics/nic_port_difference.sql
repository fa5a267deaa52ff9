/* ---
about: Bytes that a NIC received between its first and last reading of the hour outside gaps, and bytes that its leaf port sent meanwhile.
partition: hour_utc
grain: [cluster, server, hca, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hca: VARCHAR the adapter, mlx5_n
  hour_utc: TIMESTAMP the hour
  first_utc: TIMESTAMP the NIC's first reading at which its port was observed; NULL where every reading fell into a gap
  last_utc: TIMESTAMP the NIC's last such reading
  rx_bytes: BIGINT [B] last counter minus first; NULL where the counter restarted in between
  port_bytes: BIGINT [B] bytes out of its port, from the second of the first reading up to that of the last; NULL where the NIC has no port with counters
  difference_ratio: DOUBLE [1] rx_bytes / port_bytes - 1
time: hour_utc
measures:
  rx_bytes, port_bytes: sum, shown in GB
  difference_ratio: none, shown in %
checks:
  - first_utc <= last_utc or first_utc is null
sources: docs/metrics/flows.md
--- */
WITH gaps AS (                 -- seconds in which the port was not observed: their bytes are means of the gap
    SELECT cluster, server, hca, hour_utc, second_utc
    FROM metrics.nic_second
    WHERE quality = 'gap'
),

seen AS (
    SELECT n.*, g.second_utc IS NULL AS is_observed
    FROM staging.hour_nic AS n
    LEFT JOIN gaps AS g  -- grain, once
        ON
            g.cluster = n.cluster
            AND g.server = n.server
            AND g.hca = n.hca
            AND g.hour_utc = n.hour_utc
            AND g.second_utc = date_trunc('second', n.time_utc)
),

readings AS (
    SELECT
        cluster,
        server,
        hca,
        hour_utc,
        min(time_utc) FILTER (WHERE is_observed) AS first_utc,
        max(time_utc) FILTER (WHERE is_observed) AS last_utc,
        arg_max(received_bytes, (time_utc, received_bytes)) FILTER (WHERE is_observed) AS last_bytes,
        arg_min(received_bytes, (time_utc, received_bytes)) FILTER (WHERE is_observed) AS first_bytes
    FROM seen
    GROUP BY ALL
),

sent AS (
    SELECT r.cluster, r.server, r.hca, r.hour_utc, sum(s.rx_bytes) AS port_bytes
    FROM readings AS r
    JOIN metrics.nic_second AS s  -- check of port_owners
        ON
            s.cluster = r.cluster
            AND s.server = r.server
            AND s.hca = r.hca
            AND s.hour_utc = r.hour_utc
            AND s.second_utc >= date_trunc('second', r.first_utc)
            AND s.second_utc < date_trunc('second', r.last_utc)
    GROUP BY ALL
)

SELECT
    r.cluster,
    r.server,
    r.hca,
    r.hour_utc,
    r.first_utc,
    r.last_utc,
    CASE WHEN r.last_bytes >= r.first_bytes THEN r.last_bytes - r.first_bytes END AS rx_bytes,
    s.port_bytes,
    CASE WHEN r.last_bytes >= r.first_bytes THEN (r.last_bytes - r.first_bytes) / nullif(s.port_bytes, 0) - 1 END
        AS difference_ratio
FROM readings AS r
LEFT JOIN sent AS s USING (cluster, server, hca, hour_utc)  -- once
