/* ---
about: How full each port was in each minute of the latest hour, in percent of its line rate, by its fuller direction.
params:
  cluster: VARCHAR the cluster
--- */
WITH full_minutes AS (
    SELECT
        m.switch,
        m.port,
        m.minute_utc,
        m.hour_utc,
        p.port_class,
        100 * greatest(m.in_bytes, m.out_bytes) * 8 / 60 / p.line_rate_bps AS percent
    FROM metrics.port_minute AS m
    JOIN topology.ports AS p USING (cluster, switch, port)
    WHERE m.cluster = $cluster AND p.line_rate_bps > 0 AND p.port_class <> 'management'
    QUALIFY m.hour_utc = max(m.hour_utc) OVER ()
),
minutes AS (
    SELECT switch, port, port_class, hour_utc, minute(minute_utc) AS minute, percent
    FROM full_minutes
),
cells AS (                          -- 60 a port; a minute that nothing was seen in is NULL
    SELECT p.switch, p.port, p.port_class, p.hour_utc, r.minute, m.percent
    FROM (SELECT DISTINCT switch, port, port_class, hour_utc FROM minutes) AS p
    CROSS JOIN (SELECT unnest(range(60)) AS minute) AS r
    LEFT JOIN minutes AS m ON m.switch = p.switch AND m.port = p.port AND m.minute = r.minute
)
SELECT
    switch,
    port,
    port_class,
    round(max(percent), 1) AS fullest_percent,
    list(round(percent, 1) ORDER BY minute) AS percent_by_minute,
    hour_utc,
    row_number() OVER (ORDER BY max(percent) DESC NULLS LAST, switch, port) AS place
FROM cells
GROUP BY switch, port, port_class, hour_utc
ORDER BY starts_with(switch, 'ST-'), length(switch), switch, port_class, length(port), port
