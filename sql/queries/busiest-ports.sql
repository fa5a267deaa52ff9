/* ---
about: Ports with the most bytes in an hour, in and out together.
question: How full is the fabric, and how even?
params:
  switch: VARCHAR = null only ports of this switch, as Leaf-10
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [switch, port, server, in_bytes, out_bytes]
ranked: in_bytes + out_bytes desc
--- */
SELECT h.switch, h.port, p.server, h.in_bytes, h.out_bytes,
    round(h.in_utilization, 4) AS in_utilization, round(h.out_utilization, 4) AS out_utilization,
    p.port_class, p.nic, h.flags, h.hour_utc, h.cluster
FROM metrics.port_hour AS h
LEFT JOIN topology.ports AS p USING (cluster, switch, port)
WHERE h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
    AND ($switch IS NULL OR h.switch = $switch)
ORDER BY h.in_bytes + h.out_bytes DESC, h.cluster, h.switch, h.port
LIMIT $limit
