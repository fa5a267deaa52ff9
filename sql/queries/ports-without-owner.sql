/* ---
about: Access ports without a row in the topology sheet, with the inferred owner, the rule, and their bytes.
question: Which links carry no data, or are cabled elsewhere?
params:
  switch: VARCHAR = null only ports of this switch, as Leaf-10
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 100 number of rows
answer: [switch, port, owner, evidence, in_bytes, out_bytes]
ranked: in_bytes + out_bytes desc
--- */
SELECT h.switch, h.port, o.server AS owner, o.evidence, h.in_bytes, h.out_bytes, o.nic, h.busy_seconds, h.hour_utc, h.cluster
FROM topology.hour_owners AS o
JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)
WHERE o.evidence <> 'workbook'
    AND o.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
    AND ($switch IS NULL OR h.switch = $switch)
ORDER BY h.in_bytes + h.out_bytes DESC, h.cluster, h.switch, h.port
LIMIT $limit
