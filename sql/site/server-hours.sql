/* ---
about: Bytes that each server received and sent in each hour.
--- */
SELECT cluster, server, hour_utc, nics, rails_used, rx_bytes, tx_bytes, rx_mean_bps, tx_mean_bps
FROM metrics.server_hour
WHERE NOT starts_with(server, 'unlisted:')
ORDER BY cluster, server, hour_utc
