/* ---
about: Number of queue pairs and peers of each NIC, from the hour's flow table.
partition: hour_utc
grain: [cluster, server, hca, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n; the NIC's address where no server is known
  hca: VARCHAR the adapter, mlx5_n; the NIC's address, or unknown, where the workbook maps none or several of the server's NICs to the leaf
  hour_utc: TIMESTAMP the hour
  queue_pairs: BIGINT [1] queue pairs of the NIC, in flows that it sends or receives; NULL where the table has none
  peers: BIGINT [1] distinct addresses at the other ends; NULL where the table has none
time: hour_utc
measures:
  queue_pairs: sum except over hour_utc
  peers: none                 # two NICs may have one
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
)

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
