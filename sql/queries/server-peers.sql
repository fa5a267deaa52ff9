/* ---
about: 'A server and the other servers of its leaf group: bytes, rails used, and place in the ranking.'
question: What does a server do, and where is it plugged in?
params:
  server: VARCHAR the server, as GPU-35
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [server, place, servers, rails_used, rx_bytes, tx_bytes, times_median]
ranked: place asc
--- */
-- times_median: bytes of the server over those of the median server of its leaf group
WITH placed AS (
    SELECT h.cluster, s.leaf_group, h.server, h.nics, h.rails_used, h.rx_bytes, h.tx_bytes, h.hour_utc,
        rank() OVER peers AS place,
        count(*) OVER (PARTITION BY h.cluster, s.leaf_group) AS servers,
        median(h.rx_bytes + h.tx_bytes) OVER (PARTITION BY h.cluster, s.leaf_group) AS median_of_group
    FROM metrics.server_hour AS h
    JOIN topology.servers AS s USING (cluster, server)
    WHERE h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.server_hour))
    WINDOW peers AS (PARTITION BY h.cluster, s.leaf_group ORDER BY h.rx_bytes + h.tx_bytes DESC)
)
SELECT p.server, p.leaf_group, p.place, p.servers, p.nics, p.rails_used, p.rx_bytes, p.tx_bytes,
    round((p.rx_bytes + p.tx_bytes) / nullif(p.median_of_group, 0), 3) AS times_median, p.hour_utc, p.cluster
FROM placed AS p
JOIN placed AS own ON own.cluster = p.cluster AND own.leaf_group = p.leaf_group AND own.server = $server
WHERE p.server = $server OR abs(p.place - own.place) <= 3
ORDER BY p.cluster, p.place, p.server
