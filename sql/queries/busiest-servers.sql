/* ---
about: Servers with the most bytes in an hour, received and sent together.
question: What does a server do, and where is it plugged in?
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [server, nics, rails_used, rx_bytes, tx_bytes, rx_mean_bps, tx_mean_bps]
ranked: rx_bytes + tx_bytes desc
--- */
SELECT server, nics, rails_used, rx_bytes, tx_bytes, rx_mean_bps, tx_mean_bps, hour_utc, cluster
FROM metrics.server_hour
WHERE hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.server_hour))
ORDER BY rx_bytes + tx_bytes DESC, cluster, server
LIMIT $limit
