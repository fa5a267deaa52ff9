/* ---
about: 'Jobs of an hour as the network sees them, ordered by bytes: servers, leaves, period with its standard error, and the rate of each minute.'
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH moved AS (                     -- job 0: servers in no job
    SELECT h.server, h.rx_bytes, h.tx_bytes, coalesce(g.group_id, 0) AS job_id
    FROM metrics.server_hour AS h
    LEFT JOIN metrics.traffic_groups AS g USING (cluster, server, hour_utc)
    WHERE h.cluster = $cluster AND h.hour_utc = $hour AND h.rx_bytes + h.tx_bytes > 0
),
jobs AS (
    SELECT
        job_id,
        count(*) AS servers,
        sum(rx_bytes)::BIGINT AS rx_bytes,
        sum(tx_bytes)::BIGINT AS tx_bytes,
        arg_min(server, (length(server), server)) AS first_server,
        string_agg(server, ' ' ORDER BY length(server), server) AS which
    FROM moved
    GROUP BY job_id
),
rates AS (
    SELECT m.job_id, minute(s.minute_utc) AS minute, sum(s.rx_bytes + s.tx_bytes) * 8e-9 / 60 AS gbps
    FROM moved AS m
    JOIN metrics.server_minute AS s ON s.server = m.server AND s.cluster = $cluster AND s.hour_utc = $hour
    GROUP BY ALL
),
profiles AS (                       -- 60 values; NULL where the minutes were dropped
    SELECT
        job_id,
        list(round(coalesce(gbps, 0), 1) ORDER BY minute) AS gbps,
        round(max(gbps), 1) AS highest_gbps
    FROM (SELECT DISTINCT job_id FROM rates)
    CROSS JOIN (SELECT unnest(range(60)) AS minute)
    LEFT JOIN rates AS r USING (job_id, minute)
    GROUP BY job_id
),
places AS (                         -- loaded leaves on which the servers moved bytes
    SELECT
        job_id,
        string_agg(switch, ' ' ORDER BY starts_with(switch, 'ST-'), length(switch), switch) AS on_leaves,
        round(max(opening_gap_seconds), 1) AS opening_gap_seconds
    FROM (
        SELECT DISTINCT m.job_id, o.switch, q.opening_gap_seconds
        FROM moved AS m
        JOIN topology.hour_owners AS o ON o.server = m.server AND o.cluster = $cluster AND o.hour_utc = $hour
        JOIN metrics.port_hour AS p USING (cluster, switch, port, hour_utc)
        LEFT JOIN metrics.sampling_quality AS q USING (cluster, switch, hour_utc)
        WHERE p.in_bytes + p.out_bytes > 0
    )
    GROUP BY job_id
),
periods AS (
    SELECT group_id AS job_id, period
    FROM metrics.traffic_jobs
    WHERE cluster = $cluster AND hour_utc = $hour
),
shown AS (
    SELECT
        coalesce(j.first_server || CASE WHEN j.servers > 1 THEN ' +' || (j.servers - 1) ELSE '' END, '') AS job,
        nullif(j.job_id, 0) AS job_id,
        j.servers,
        round(100 * (j.rx_bytes + j.tx_bytes) / sum(j.rx_bytes + j.tx_bytes) OVER (), 1) AS bytes_percent,
        j.rx_bytes + j.tx_bytes AS bytes,
        j.rx_bytes,
        j.tx_bytes,
        t.period,
        p.on_leaves,
        j.first_server,
        j.which,
        p.opening_gap_seconds,
        r.highest_gbps,
        r.gbps,
        row_number() OVER (ORDER BY j.job_id = 0, j.rx_bytes + j.tx_bytes DESC, j.first_server) AS place
    FROM jobs AS j
    LEFT JOIN profiles AS r USING (job_id)
    LEFT JOIN places AS p USING (job_id)
    LEFT JOIN periods AS t USING (job_id)
),
sized AS (
    SELECT
        *,
        ['B', 'kB', 'MB', 'GB', 'TB', 'PB'][CAST(floor(log10(greatest(bytes, 1)) / 3) AS INTEGER) + 1] AS unit,
        1000 ** floor(log10(greatest(bytes, 1)) / 3) AS unit_bytes
    FROM shown
),
told AS (
    SELECT
        coalesce(
            first(format(
                'Largest tenant: {} servers ({}{}); {:g} % of the bytes of all servers',
                servers, array_to_string(string_split(which, ' ')[:5], ', '),
                CASE WHEN servers > 5 THEN format(' and {} more', servers - 5) ELSE '' END, bytes_percent
            ) ORDER BY place) FILTER (WHERE job_id IS NOT NULL),
            'No servers pulse together: no tenant can be identified'
        ) AS title,
        coalesce(
            first(format(
                'Jobs in this hour: servers whose traffic rises and falls together. The largest received and sent {:.1f} {}{}. {}',
                bytes / unit_bytes, unit, coalesce(', an iteration every ' || period, ''),
                'Bytes by the minute, each job on its own scale. Hatched: no poll, the mean of the gap.'
            ) ORDER BY place) FILTER (WHERE job_id IS NOT NULL),
            first(format('Together they moved {:.1f} {}.', bytes / unit_bytes, unit))
        ) AS conclusion
    FROM sized
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY place
