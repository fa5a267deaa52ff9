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
  bytes: >-
    SELECT concat('at NICs on loaded leaves, ', CASE WHEN min(loaded) = max(loaded) AND min(known) = max(known)
    THEN concat(min(loaded), ' of ', min(known), ' per server') ELSE concat(sum(loaded)::BIGINT, ' of ', sum(known)::BIGINT) END)
    FROM (SELECT count(DISTINCT o.switch) AS known, count(DISTINCT o.switch) FILTER (WHERE s.has_counters) AS loaded
    FROM metrics.traffic_groups AS g JOIN topology.port_owners AS o USING (cluster, server) LEFT JOIN topology.switches AS s USING (cluster, switch)
    WHERE g.hour_utc = (SELECT max(hour_utc) FROM answer) GROUP BY g.cluster, g.server) HAVING sum(loaded) < sum(known)
  shared_names: >-
    SELECT concat(string_agg(DISTINCT g.server, ', ' ORDER BY g.server), ': each name stands for two servers whose ports no sheet tells apart')
    FROM metrics.traffic_groups AS g WHERE g.hour_utc = (SELECT max(hour_utc) FROM answer)
    AND regexp_full_match(g.server, 'GPU-[0-9]+/[0-9]+') HAVING count(*) > 0
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
