/* ---
about: 'A NIC in an hour: queue pairs and peers by the flow table, and bytes by its own counter beside those of its leaf port.'
partition: hour_utc
grain: [cluster, server, hca, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n; in flows of an unknown server the NIC's address
  hca: VARCHAR the adapter, mlx5_n; in flows the NIC's address, or unknown, where the workbook maps none or several of the server's NICs to the leaf
  hour_utc: TIMESTAMP the hour
  queue_pairs: BIGINT [1] queue pairs of the NIC, in flows that it sends or receives; NULL where the flow table has none
  peers: BIGINT [1] distinct addresses at the other ends; NULL where the flow table has none
  first_utc: TIMESTAMP first reading of the NIC's counter at which its port was observed; NULL where the NIC table has none, or every reading fell into a gap
  last_utc: TIMESTAMP last such reading
  rx_bytes: BIGINT [B] bytes that the NIC received between them by its counter; NULL where the counter restarted in between
  port_bytes: BIGINT [B] bytes out of its port, from the second of the first reading up to that of the last; NULL where the NIC has no port with counters
  difference_ratio: DOUBLE [1] rx_bytes / port_bytes - 1
time: hour_utc
measures:
  queue_pairs: sum except over hour_utc
  peers: none                 # two NICs may have one
  rx_bytes, port_bytes: sum, shown in GB
  difference_ratio: none, shown in %
checks:
  - first_utc <= last_utc or first_utc is null
sources: docs/metrics/flows.md
--- */
WITH ends AS (                 -- each flow seen from both ends
    SELECT
        cluster,
        hour_utc,
        coalesce(source_server, source_ip) AS server,
        source_switch AS switch,
        source_ip AS ip,
        source_qp AS qp,
        dest_ip AS peer
    FROM staging.hour_flow
    UNION ALL
    SELECT
        cluster,
        hour_utc,
        coalesce(dest_server, dest_ip) AS server,
        dest_switch AS switch,
        dest_ip AS ip,
        dest_qp AS qp,
        source_ip AS peer
    FROM staging.hour_flow
),

only_nics AS (                 -- a server has one NIC on each leaf of its group; two NICs on one leaf cannot be distinguished
    SELECT cluster, server, switch, min(hca) AS hca
    FROM topology.nic_ports
    GROUP BY cluster, server, switch
    HAVING count(*) = 1
),

peers AS (                     -- lists of numbers, since count(DISTINCT ..) by names holds each flow at four times the size
    SELECT
        cluster,
        hour_utc,
        server,
        switch,
        ip,
        peer,
        bool_and(qp IS NOT NULL) AS has_queue_pairs,
        list_distinct(list(CAST(qp AS BIGINT))) AS queue_pairs  -- lint: allow order because distinct ones are counted
    FROM ends
    GROUP BY ALL
),

flows AS (
    SELECT
        p.cluster,
        p.server,
        coalesce(n.hca, p.ip, 'unknown') AS hca,
        p.hour_utc,
        CASE
            WHEN bool_and(p.has_queue_pairs)
                THEN len(list_distinct(flatten(list(p.queue_pairs))))  -- lint: allow order because distinct ones are counted
        END AS queue_pairs,
        nullif(count(DISTINCT p.peer), 0) AS peers
    FROM peers AS p
    LEFT JOIN only_nics AS n USING (cluster, server, switch)  -- once
    GROUP BY ALL
),

gaps AS (                      -- seconds in which the port was not observed: their bytes are means of the gap
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
),

counters AS (
    SELECT
        r.* EXCLUDE (first_bytes, last_bytes),
        CASE WHEN r.last_bytes >= r.first_bytes THEN r.last_bytes - r.first_bytes END AS rx_bytes,
        s.port_bytes,
        rx_bytes / nullif(s.port_bytes, 0) - 1 AS difference_ratio
    FROM readings AS r
    LEFT JOIN sent AS s USING (cluster, server, hca, hour_utc)  -- once
)

SELECT
    cluster,
    server,
    hca,
    hour_utc,
    f.queue_pairs,
    f.peers,
    c.first_utc,
    c.last_utc,
    c.rx_bytes,
    c.port_bytes,
    c.difference_ratio
FROM flows AS f
FULL JOIN counters AS c USING (cluster, server, hca, hour_utc)  -- grain, once
