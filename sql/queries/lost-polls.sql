/* ---
about: Ports that lost polls in an hour, with their traffic around the lost polls and in the other seconds.
question: What is loaded, and how well was it observed?
aliases: [missing-polls]
params:
  switch: VARCHAR = null only ports of this switch, as Leaf-6
  hour: TIMESTAMP = null the hour (UTC); default the latest
  limit: INTEGER = 20 number of rows
answer: [switch, port, server, missing_polls, at_lost, at_other]
ranked: missing_polls desc
--- */
-- missing_polls: poll times of the switch at which the port has no row
-- at_lost: utilization in the busier direction, mean over the seconds with a lost poll; the release stores no
--   row of a 200G port that would show more than 100 %, so lost polls mean a saturated port
-- at_other: the same over the other seconds of the port that were observed
WITH chosen AS (
    SELECT h.cluster, h.switch, h.port, h.hour_utc, h.missing_polls, h.polls, h.line_rate_bps, h.in_bytes, h.out_bytes, f.file_key
    FROM metrics.port_hour AS h
    JOIN staging.port_files AS f USING (cluster, switch, port, hour_utc)
    WHERE h.missing_polls > 0 AND ($switch IS NULL OR h.switch = $switch)
        AND h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
    ORDER BY h.missing_polls DESC, h.cluster, h.switch, h.port
    LIMIT $limit
),
lost AS (                      -- seconds in which the switch was polled and the port has no row
    SELECT DISTINCT c.file_key, p.offset_ms // 1000 AS second
    FROM chosen AS c
    JOIN staging.switch_polls AS p USING (cluster, switch, hour_utc)
    ANTI JOIN staging.port_readings AS r ON r.file_key = c.file_key AND r.hour_utc = p.hour_utc AND r.offset_ms = p.offset_ms
),
seconds AS (
    SELECT s.file_key, s.second, greatest(s.in_bytes, s.out_bytes) * 8 AS bits, l.second IS NOT NULL AS is_lost
    FROM staging.port_seconds AS s
    LEFT JOIN lost AS l USING (file_key, second)
    WHERE s.longest_ms <= 10000 AND s.file_key IN (SELECT file_key FROM chosen)
        AND s.hour_utc IN (SELECT hour_utc FROM chosen)
),
rates AS (
    SELECT file_key, avg(bits) FILTER (WHERE is_lost) AS lost_bps, avg(bits) FILTER (WHERE NOT is_lost) AS other_bps,
        max(bits) AS highest_bps
    FROM seconds
    GROUP BY ALL
)
SELECT c.switch, c.port, p.server, c.missing_polls, round(r.lost_bps / c.line_rate_bps, 4) AS at_lost,
    round(r.other_bps / c.line_rate_bps, 4) AS at_other, round(r.highest_bps / c.line_rate_bps, 4) AS highest_utilization,
    c.polls, c.in_bytes, c.out_bytes, p.nic, c.hour_utc, c.cluster
FROM chosen AS c
LEFT JOIN rates AS r USING (file_key)
LEFT JOIN topology.ports AS p USING (cluster, switch, port)
ORDER BY c.missing_polls DESC, c.cluster, c.switch, c.port
