/* ---
about: 'Groups of servers that pulse together in an hour, that is jobs as the network sees them, ordered by bytes.'
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH moved AS (
    SELECT h.server, h.rx_bytes, h.tx_bytes, g.group_id, g.period_seconds
    FROM metrics.server_hour AS h
    LEFT JOIN metrics.traffic_groups AS g USING (cluster, server, hour_utc)
    WHERE h.cluster = $cluster AND h.hour_utc = $hour AND h.rx_bytes + h.tx_bytes > 0
),
groups AS (
    SELECT
        group_id,
        count(*) AS servers,
        sum(rx_bytes)::BIGINT AS rx_bytes,
        sum(tx_bytes)::BIGINT AS tx_bytes,
        min(period_seconds) AS period_seconds,
        arg_min(server, (length(server), server)) AS first_server,
        string_agg(server, ' ' ORDER BY length(server), server) AS which
    FROM moved
    GROUP BY group_id
)
SELECT
    coalesce(first_server || CASE WHEN servers > 1 THEN ' +' || (servers - 1) ELSE '' END, '') AS tenant,
    group_id IS NOT NULL AS pulses_together,
    servers,
    round(100 * (rx_bytes + tx_bytes) / sum(rx_bytes + tx_bytes) OVER (), 1) AS bytes_percent,
    rx_bytes + tx_bytes AS bytes,
    rx_bytes,
    tx_bytes,
    round(period_seconds, 1) AS period_seconds,
    first_server,
    which,
    row_number() OVER (ORDER BY group_id IS NULL, rx_bytes + tx_bytes DESC, first_server) AS place
FROM groups
ORDER BY place
