/* ---
about: Servers that moved ten times as much one way as the other in an hour, those with the most bytes first.
question: What does a server do, and where is it plugged in?
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [server, rx_bytes, tx_bytes, smaller_over_larger, nics]
--- */
-- smaller_over_larger: bytes of the direction with less over those of the other; acknowledgments of received
--   data alone come to 0.02
-- nics: NICs of the server on ports with counters; the others can carry the other direction
SELECT server, rx_bytes, tx_bytes, round(least(rx_bytes, tx_bytes) / greatest(rx_bytes, tx_bytes), 4) AS smaller_over_larger,
    nics, rails_used, hour_utc, cluster
FROM metrics.server_hour
WHERE greatest(rx_bytes, tx_bytes) >= 1000000000 AND 10 * least(rx_bytes, tx_bytes) < greatest(rx_bytes, tx_bytes)
    AND hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.server_hour))
ORDER BY greatest(rx_bytes, tx_bytes) DESC, cluster, server
LIMIT $limit
