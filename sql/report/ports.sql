/* ---
about: Utilization of each port in an hour, in % of its line rate, with the device at the other end.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH suspicions AS (
    SELECT switch, port, string_agg(replace(kind, '_', ' '), ', ' ORDER BY kind) AS kinds
    FROM metrics.suspect_links
    WHERE cluster = $cluster
    GROUP BY ALL
)
SELECT
    h.switch,
    regexp_extract(h.port, '[0-9].*$') AS port,
    replace(h.port_class, '_', ' ') AS role,
    round(100 * h.in_utilization, 2) AS in_percent,
    round(100 * h.out_utilization, 2) AS out_percent,
    round(100 * greatest(h.in_utilization, h.out_utilization), 2) AS fuller_percent,
    o.server,
    o.nic,
    p.peer_switch,
    s.kinds AS suspect,
    h.line_rate_bps,
    row_number() OVER (ORDER BY greatest(h.in_utilization, h.out_utilization) DESC, h.switch, h.port) AS place
FROM metrics.port_hour AS h
LEFT JOIN topology.ports AS p USING (cluster, switch, port)
LEFT JOIN topology.hour_owners AS o USING (cluster, switch, port, hour_utc)
LEFT JOIN suspicions AS s USING (switch, port)
WHERE h.cluster = $cluster AND h.hour_utc = $hour AND h.port_class <> 'management'
ORDER BY
    starts_with(h.switch, 'ST-'),
    length(h.switch),
    h.switch,
    try_cast(string_split(string_split(h.port, '/')[-1], ':')[1] AS INTEGER) NULLS LAST,
    h.port
