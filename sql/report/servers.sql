/* ---
about: Bytes that each server received and sent in an hour, the busiest first.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH shown AS (
    SELECT
        h.server,
        s.leaf_group,
        h.nics,
        round(h.rx_mean_bps / 1e9, 1) AS rx_gbps,
        round(h.tx_mean_bps / 1e9, 1) AS tx_gbps,
        h.rx_bytes,
        h.tx_bytes,
        h.rx_bytes + h.tx_bytes AS bytes,
        round(p.period_seconds, 1) AS period_seconds,
        row_number() OVER (ORDER BY h.rx_bytes + h.tx_bytes DESC, h.server) AS place
    FROM metrics.server_hour AS h
    LEFT JOIN topology.servers AS s USING (cluster, server)
    LEFT JOIN metrics.traffic_periods AS p USING (cluster, server, hour_utc)
    WHERE h.cluster = $cluster AND h.hour_utc = $hour
),
told AS (
    SELECT
        first(format('{} is busiest: {:g} Gb/s received, {:g} Gb/s sent', server, rx_gbps, tx_gbps) ORDER BY place) AS title,
        format(
            'Received and sent are side by side and not added; the ten busiest of {:,} servers are drawn. Only NICs on loaded switches count.',
            count(*)
        ) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY place
