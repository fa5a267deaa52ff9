/* ---
about: Bytes of each leaf on its server side in each minute of an hour, with observation quality.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH moved AS (                     -- the rate of a minute is over its observed time
    SELECT
        m.switch,
        minute(m.minute_utc) AS minute,
        sum(m.in_bytes * 8e-9 / nullif(m.covered_ms / 1000, 0)) AS in_gbps,
        sum(m.out_bytes * 8e-9 / nullif(m.covered_ms / 1000, 0)) AS out_gbps
    FROM metrics.port_minute AS m
    JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)
    WHERE m.cluster = $cluster AND m.hour_utc = $hour AND h.port_class IN ('access', 'storage_access')
    GROUP BY ALL
),
polls AS (
    SELECT switch, coalesce(previous_ms, 0) AS start_ms, offset_ms AS end_ms
    FROM staging.switch_polls
    WHERE cluster = $cluster AND hour_utc = $hour
),
last_polls AS (
    SELECT switch, max(end_ms) AS last_ms FROM polls GROUP BY switch
),
gaps AS (                           -- minutes that a time of more than 10 s without a poll reaches into
    SELECT DISTINCT switch, unnest(range(start_ms // 60000, (end_ms - 1) // 60000 + 1)) AS minute
    FROM polls
    WHERE end_ms - start_ms > 10000
),
cells AS (                          -- 60 per switch; by its polls, not by its bytes: a polled switch may be idle
    SELECT
        s.switch,
        r.minute,
        CASE WHEN g.minute IS NOT NULL THEN 'gap' WHEN 60000 * r.minute > s.last_ms THEN 'none' ELSE 'seen' END AS state,
        CASE WHEN state <> 'none' THEN coalesce(m.in_gbps, 0) END AS in_gbps,
        CASE WHEN state <> 'none' THEN coalesce(m.out_gbps, 0) END AS out_gbps
    FROM last_polls AS s
    CROSS JOIN (SELECT unnest(range(60)) AS minute) AS r
    LEFT JOIN gaps AS g USING (switch, minute)
    LEFT JOIN moved AS m USING (switch, minute)
),
series AS (
    SELECT
        switch,
        round(max(in_gbps) FILTER (WHERE state = 'seen'), 1) AS highest_in_gbps,
        round(max(out_gbps) FILTER (WHERE state = 'seen'), 1) AS highest_out_gbps,
        list(round(in_gbps, 1) ORDER BY minute) AS in_gbps,
        list(round(out_gbps, 1) ORDER BY minute) AS out_gbps,
        count(*) FILTER (WHERE state = 'gap') AS gap_minutes,
        string_agg(CASE state WHEN 'seen' THEN '.' WHEN 'gap' THEN 'g' ELSE '-' END, '' ORDER BY minute) AS minutes
    FROM cells
    GROUP BY switch
),
looked AS (
    SELECT
        q.switch,
        q.polls,
        q.median_poll_ms,
        q.opening_gap_seconds,
        q.gap_bytes_share,
        q.missing_port_polls,
        max(q.opening_gap_seconds) OVER () AS longest_gap_seconds,
        sum(q.gap_bytes_share * l.in_bytes) OVER () / nullif(sum(l.in_bytes) OVER (), 0) AS gap_bytes_share_of_hour
    FROM metrics.sampling_quality AS q
    LEFT JOIN metrics.leaf_hour AS l USING (cluster, switch, hour_utc)
    WHERE q.cluster = $cluster AND q.hour_utc = $hour
),
shown AS (
    SELECT
        w.switch,
        l.switch IS NOT NULL AS loaded,
        coalesce(c.leaves + c.storage_leaves, count(*) OVER ())::BIGINT AS leaves_of_cluster,
        l.polls,
        l.median_poll_ms,
        round(l.opening_gap_seconds, 1) AS opening_gap_seconds,
        round(100 * l.gap_bytes_share, 1) AS gap_bytes_percent,
        round(l.longest_gap_seconds)::BIGINT AS longest_gap_seconds,
        round(100 * l.gap_bytes_share_of_hour, 1) AS gap_bytes_percent_of_hour,
        l.missing_port_polls,
        m.gap_minutes,
        m.minutes,
        m.highest_in_gbps,
        m.highest_out_gbps,
        m.in_gbps,
        m.out_gbps,
        row_number() OVER (ORDER BY l.gap_bytes_share DESC NULLS LAST, w.switch) AS place,
        row_number() OVER (ORDER BY greatest(m.highest_in_gbps, m.highest_out_gbps) DESC NULLS LAST, w.switch) AS busiest_place
    FROM topology.switches AS w
    LEFT JOIN looked AS l USING (switch)
    LEFT JOIN series AS m USING (switch)
    LEFT JOIN reference.clusters AS c ON c.cluster = w.cluster
    WHERE w.cluster = $cluster AND (w.role IN ('leaf', 'storage_leaf') OR l.switch IS NOT NULL)
),
of_hour AS (
    SELECT
        count(*) FILTER (WHERE loaded) AS seen,
        any_value(leaves_of_cluster) AS leaves,
        count(opening_gap_seconds) FILTER (WHERE loaded) AS gaps,
        max(longest_gap_seconds) AS longest,
        max(gap_bytes_percent_of_hour) AS percent_of_hour,
        first(switch ORDER BY place) FILTER (WHERE loaded) AS largest_at,
        first(gap_bytes_percent ORDER BY place) FILTER (WHERE loaded) AS largest_percent,
        sum(missing_port_polls)::BIGINT AS missing,
        first(switch ORDER BY busiest_place) FILTER (WHERE loaded AND in_gbps IS NOT NULL) AS busiest,
        max(greatest(highest_in_gbps, highest_out_gbps)) AS highest_gbps
    FROM shown
),
told AS (
    SELECT
        CASE WHEN seen = 0 THEN 'No switch is loaded in this hour' ELSE concat(
            format('{} of {} leaves loaded', seen, leaves),
            format(
                '; the hour begins with up to {} s without a poll{}', longest, CASE WHEN gaps < seen THEN format(' on {} of them', gaps) ELSE '' END
            )
        ) END AS title,
        CASE WHEN seen = 0 THEN 'Its port counters are not among the files.' ELSE concat(
            format(
                'In this hour, {:g} % of the bytes that entered the loaded leaves came in this gap, the largest share at {}: {:g} %. '
                || 'Their sum is known, their minutes are not. ',
                percent_of_hour, largest_at, largest_percent
            ),
            format('After the gap, {:,} polls of single ports are missing. ', missing), 'Hatched: not observed, to the second.'
        ) END AS conclusion,
        coalesce(
            format('{} has the busiest polled minute: {:g} Gb/s', busiest, highest_gbps),
            'No minute is known'
        ) AS minutes_title,
        'Traffic between each leaf and its servers, by the minute. Hatched: no poll. The line there is the mean of the gap, from its '
        || 'known sum, and the highest minute has no part of it. Scales differ.' AS minutes_conclusion
    FROM of_hour
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY starts_with(switch, 'ST-'), length(switch), switch
