/* ---
about: The fullest seconds of ports in an hour, by direction, among seconds that were observed.
question: How full is the fabric, and how even?
aliases: [fullest-second, peak-seconds]
params:
  by: VARCHAR = 'utilization' order by utilization (of the line rate) or bytes
  switch: VARCHAR = null only ports of this switch, as Leaf-6
  way: VARCHAR = null only in or out
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [time, switch, port, direction, bytes, utilization]
--- */
-- utilization: bytes of the second x 8 over the line rate; polls and refreshes are not in step, so values a
--   little above 1 occur
-- observed: seconds in gaps between polls of more than 10 s are left out, since their bytes are means of the
--   gap
WITH seconds AS (
    SELECT s.cluster, s.switch, s.port, s.second_utc, s.hour_utc, d.direction, s.quality,
        CASE d.direction WHEN 'in' THEN s.in_bytes ELSE s.out_bytes END AS bytes
    FROM metrics.port_second AS s
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    WHERE s.quality <> 'gap' AND ($switch IS NULL OR s.switch = $switch) AND ($way IS NULL OR d.direction = $way)
        AND s.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
)
SELECT strftime(s.second_utc, '%H:%M:%S') AS time, s.switch, s.port, s.direction, s.bytes, round(s.bytes * 8 / h.line_rate_bps, 4) AS utilization,
    p.server, h.port_class, p.nic, s.quality, s.second_utc, s.hour_utc, s.cluster
FROM seconds AS s
JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)
LEFT JOIN topology.ports AS p USING (cluster, switch, port)
WHERE h.port_class <> 'management'
ORDER BY CASE $by WHEN 'bytes' THEN s.bytes ELSE s.bytes * 8 / h.line_rate_bps END DESC,
    s.cluster, s.switch, s.port, s.second_utc, s.direction
LIMIT $limit
