/* ---
about: The servers that moved most, in the latest hour.
--- */
SELECT
    h.server,
    s.leaf_group,
    h.nics,
    h.rails_used,
    round(h.rx_mean_bps / 1e9, 1) AS rx_gbps,
    round(h.tx_mean_bps / 1e9, 1) AS tx_gbps,
    h.rx_bytes,
    h.tx_bytes,
    p.period_seconds,
    h.hour_utc,
    h.cluster
FROM metrics.server_hour AS h
LEFT JOIN topology.servers AS s USING (cluster, server)
LEFT JOIN metrics.traffic_periods AS p USING (cluster, server, hour_utc)
WHERE h.hour_utc = (SELECT max(hour_utc) FROM metrics.server_hour) AND h.rx_bytes + h.tx_bytes > 0
ORDER BY h.rx_bytes + h.tx_bytes DESC, h.cluster, h.server
LIMIT 20
