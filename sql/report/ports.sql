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
),
shown AS (
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
),
told AS (
    SELECT
        first(format(
            'The fullest link is {} {}{}: {:g} % of its line rate, mean of the hour',
            switch, port, coalesce(' (' || coalesce(server, peer_switch) || ')', ''), round(fuller_percent, 1)
        ) ORDER BY place) AS title,
        format(
            '{:,} ports of {} switches as on their front panels, colored by the fuller direction; {:,} of them moved nothing or under '
            || '0.005 %. A ✕ marks a suspect port: {}.',
            count(*), count(DISTINCT switch), count(*) FILTER (WHERE coalesce(fuller_percent, 0) = 0),
            CASE count(suspect) WHEN 0 THEN 'none' ELSE count(suspect)::VARCHAR END
        ) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY starts_with(switch, 'ST-'), length(switch), switch,
    try_cast(string_split(string_split(port, '/')[-1], ':')[1] AS INTEGER) NULLS LAST,
    port
