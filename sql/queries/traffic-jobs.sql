/* ---
about: Jobs of an hour as the network sees them, that is groups of servers that pulsed together, those with the most bytes first.
question: Who trains together, over which ports, how much?
aliases: [pulsing-together, network-jobs, train-together]
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [group_id, servers, bytes, access_share, period, duty, which, on_leaves, pulses]
ranked: bytes desc
--- */
-- access_share: of the bytes that all servers on the loaded leaves received and sent
-- period: time from iteration to iteration, with its standard error; after 'or' that of faster iterations that
--   would look the same
-- duty: of the time, the part above half of the pulses' height
WITH members AS (
    SELECT cluster, hour_utc, group_id, string_agg(server, ' ' ORDER BY length(server), server) AS which
    FROM metrics.traffic_groups
    GROUP BY ALL
),
places AS (                         -- loaded leaves on which the members moved bytes
    SELECT cluster, hour_utc, group_id, string_agg(switch, ' ' ORDER BY length(switch), switch) AS on_leaves
    FROM (
        SELECT DISTINCT g.cluster, g.hour_utc, g.group_id, o.switch
        FROM metrics.traffic_groups AS g
        JOIN topology.hour_owners AS o USING (cluster, server, hour_utc)
        JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)
        WHERE h.in_bytes + h.out_bytes > 0
    )
    GROUP BY ALL
)
SELECT
    j.group_id,
    j.servers,
    j.bytes,
    round(j.access_share, 4) AS access_share,
    j.period,
    j.duty_cycle AS duty,
    j.period_seconds,
    j.period_error_seconds,
    j.alias_seconds,
    j.iterations,
    j.bytes_per_iteration,
    j.resolved_from,
    m.which,
    p.on_leaves,
    concat(
        CASE j.unresolved
            WHEN 'idle' THEN 'not resolved: less than 1 GB was moved'
            WHEN 'aperiodic' THEN 'not resolved: no regular pulses'
            WHEN 'fast' THEN 'not resolved: under 4 s apart, and no comb of five teeth'
            WHEN 'few_cycles' THEN 'not resolved: fewer than 12 iterations were observed'
            WHEN 'unsteady' THEN 'not resolved: the time from pulse to pulse varies'
            WHEN 'shallow' THEN 'not resolved: too shallow to tell from an alias'
            ELSE concat(
                format('{:,}', j.iterations), ' iterations of ', j.bytes_per_iteration, ' B, seen in ',
                CASE j.resolved_from WHEN 'server' THEN 'single servers' ELSE 'the sum of the servers only' END
            )
        END,
        '; ' || j.alias_reason,
        '; in step with job ' || j.clock_of,
        ', ' || round(abs(j.lag_seconds), 1) || CASE WHEN j.lag_seconds < 0 THEN ' s earlier' ELSE ' s later' END,
        '; log of ' || j.task
    ) AS pulses,
    j.unresolved,
    j.clock_of,
    j.lag_seconds,
    j.task,
    j.leaves,
    j.rails,
    j.hour_utc,
    j.cluster
FROM metrics.traffic_jobs AS j
LEFT JOIN members AS m USING (cluster, hour_utc, group_id)
LEFT JOIN places AS p USING (cluster, hour_utc, group_id)
WHERE j.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.traffic_periods))
ORDER BY j.bytes DESC, j.cluster, j.group_id
