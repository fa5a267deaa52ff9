/* ---
about: Access ports that carried traffic although no sheet names a server on them.
params:
  switch: VARCHAR = null only ports of this switch, as Leaf-10
  hour: TIMESTAMP = null the hour (UTC); the latest where left out
  limit: INTEGER = 100 how many
--- */
SELECT h.switch, h.port, h.in_bytes, h.out_bytes, h.busy_seconds, h.hour_utc, h.cluster
FROM metrics.port_hour AS h
JOIN topology.ports AS p USING (cluster, switch, port)
WHERE p.port_class = 'access' AND p.server IS NULL AND h.in_bytes + h.out_bytes > 0
    AND h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
    AND ($switch IS NULL OR h.switch = $switch)
ORDER BY h.in_bytes + h.out_bytes DESC, h.cluster, h.switch, h.port
LIMIT $limit
