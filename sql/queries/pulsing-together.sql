/* ---
about: Groups of servers that pulsed together in an hour, that is jobs as the network sees them, those with the most bytes first.
question: Who trains together, over which ports, how much?
aliases: [network-jobs, train-together]
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [group_id, servers, bytes, access_share, period_seconds, duty_cycle, which]
ranked: bytes desc
unknown:
  period_seconds: no server of the group has a resolved period
notes:
  access_share: of the bytes that all servers on the loaded leaves received and sent
  duty_cycle: of the time, the part above half of the pulses' height
--- */
SELECT
    g.group_id,
    g.servers,
    g.period_seconds,
    round(sum(p.duty_cycle::DECIMAL(18, 6))::DOUBLE / count(p.duty_cycle), 2) AS duty_cycle,
    round(min(g.correlation), 2) AS least_correlation,
    string_agg(g.server, ' ' ORDER BY g.server) AS which,
    g.hour_utc,
    g.cluster,
    sum(h.rx_bytes + h.tx_bytes)::BIGINT AS bytes,
    round(sum(h.rx_bytes + h.tx_bytes) / nullif(t.bytes, 0), 4) AS access_share     -- of the bytes of all servers
FROM metrics.traffic_groups AS g
JOIN metrics.traffic_periods AS p ON p.cluster = g.cluster AND p.server = g.server AND p.hour_utc = g.hour_utc
JOIN metrics.server_hour AS h ON h.cluster = g.cluster AND h.server = g.server AND h.hour_utc = g.hour_utc
JOIN (
    SELECT cluster, hour_utc, sum(rx_bytes + tx_bytes) AS bytes
    FROM metrics.server_hour
    GROUP BY cluster, hour_utc
) AS t ON t.cluster = g.cluster AND t.hour_utc = g.hour_utc
WHERE g.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.traffic_periods))
GROUP BY g.cluster, g.hour_utc, g.group_id, g.servers, g.period_seconds, t.bytes
ORDER BY sum(h.rx_bytes + h.tx_bytes) DESC, g.cluster, g.group_id
