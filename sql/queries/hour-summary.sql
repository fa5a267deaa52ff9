/* ---
about: 'Each loaded hour in one line: switches and ports with counters, bytes moved, busiest port, and missed polls.'
question: What is loaded, and how well was it observed?
params:
  hour: TIMESTAMP = null only this hour (UTC); default all hours
answer: [cluster, hour_utc, switches, in_bytes, out_bytes, busiest_port]
--- */
SELECT cluster, hour_utc,
    count(DISTINCT switch) AS switches,
    count(*) AS ports,
    count(*) FILTER (WHERE in_bytes + out_bytes > 0) AS moving_ports,
    sum(in_bytes)::BIGINT AS in_bytes,
    sum(out_bytes)::BIGINT AS out_bytes,
    max_by(switch || ' ' || port, (in_bytes + out_bytes, switch, port)) AS busiest_port,
    sum(polls)::BIGINT AS polls,
    sum(missing_polls)::BIGINT AS missing_polls,
    sum(wraps)::BIGINT AS wraps
FROM metrics.port_hour
WHERE $hour IS NULL OR hour_utc = $hour::TIMESTAMP
GROUP BY ALL
ORDER BY cluster, hour_utc
