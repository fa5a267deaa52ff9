/* ---
about: NICs with seconds above 90 % of their line rate in an hour, and the polls that their ports lost, those with the most such seconds first.
question: How full is the fabric, and how even?
aliases: [full-nics]
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 100 number of rows
answer: [server, switch, port, full_seconds, missing_polls, in_bytes, out_bytes]
ranked: full_seconds desc
--- */
-- full_seconds: seconds above 90 % of the line rate, in or out
SELECT o.server, h.switch, h.port, h.full_seconds, h.missing_polls, h.in_bytes, h.out_bytes, o.nic, h.hour_utc, h.cluster
FROM metrics.port_hour AS h
JOIN topology.hour_owners AS o USING (cluster, switch, port, hour_utc)
WHERE h.full_seconds > 0
    AND h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
ORDER BY h.full_seconds DESC, h.cluster, h.switch, h.port
LIMIT $limit
