/* ---
about: Balance of each leaf's traffic over its uplinks in an hour.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH one_way AS (
    SELECT
        switch,
        regexp_extract(kind, '[a-z]+$') AS direction,
        string_agg(regexp_extract(port, '[0-9].*$'), ', ' ORDER BY length(port), port) AS ports
    FROM metrics.suspect_links
    WHERE cluster = $cluster AND starts_with(kind, 'uplink_')
    GROUP BY ALL
),
spine_bytes AS (
    SELECT u.spine, d.direction, sum(CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END) AS bytes
    FROM metrics.port_hour AS h
    JOIN topology.hour_uplinks AS u
        ON u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port AND u.hour_utc = h.hour_utc
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    WHERE h.cluster = $cluster AND h.hour_utc = $hour AND u.spine IS NOT NULL
    GROUP BY u.spine, d.direction
),
spines AS (                         -- the spine farthest from the mean of the spines, over the loaded leaves
    SELECT spine, direction, off_mean
    FROM (
        SELECT *, bytes / nullif(avg(bytes) OVER (PARTITION BY direction), 0) - 1 AS off_mean
        FROM spine_bytes
    ) AS compared
    ORDER BY abs(off_mean) DESC NULLS LAST, spine, direction
    LIMIT 1
),
shown AS (
    SELECT
        b.switch,
        b.direction,
        b.uplinks,
        round(100 * b.cov, 1) AS cov_percent,
        round(b.max_over_mean, 3) AS max_over_mean,
        round(b.jain_index, 4) AS jain_index,
        round(b.mean_bytes)::BIGINT AS mean_bytes,
        d.ports AS one_way_uplinks,
        b.cov >= k.threshold AND w.role = 'leaf' AS uneven,
        w.role = 'leaf' AS judged,
        100 * k.threshold AS threshold_percent,
        f.spine,
        f.direction AS spine_direction,
        round(100 * f.off_mean, 1) AS spine_off_percent,
        abs(f.off_mean) >= s.threshold AS spine_uneven,
        row_number() OVER (ORDER BY w.role = 'leaf' DESC, b.cov DESC, b.switch, b.direction) AS place
    FROM metrics.uplink_balance AS b
    JOIN topology.switches AS w USING (cluster, switch)
    LEFT JOIN one_way AS d USING (switch, direction)
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'uneven_leaf') AS k
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'spine_out_of_line') AS s
    LEFT JOIN spines AS f ON true
    WHERE b.cluster = $cluster AND b.hour_utc = $hour AND b.cov IS NOT NULL
),
judgment AS (
    SELECT
        list(switch || ' ' || direction ORDER BY place) FILTER (WHERE uneven) AS uneven,
        count(*) FILTER (WHERE judged) AS judged,
        count(DISTINCT switch) FILTER (WHERE judged) AS leaves,
        bool_and(judged) AS all_judged,
        max(cov_percent) FILTER (WHERE judged AND NOT uneven) AS most_of_even,
        first(cov_percent ORDER BY place) AS most,
        first(switch || ', ' || direction ORDER BY place) AS most_at,
        any_value(spine) FILTER (WHERE spine_off_percent IS NOT NULL) AS spine,
        bool_and(spine_uneven) AS spine_uneven,
        any_value(spine_direction) AS spine_direction,
        any_value(spine_off_percent) AS spine_off_percent,
        any_value(threshold_percent) AS threshold_percent
    FROM shown
),
told AS (
    SELECT
        concat(
            'ECMP is fair',
            ' but for ' || nullif(concat_ws(
                ' and ',
                array_to_string(uneven[:3], ', ') || CASE WHEN len(uneven) > 3 THEN format(' and {} more', len(uneven) - 3) ELSE '' END
                || format(' (standard deviation up to {:g} %)', most),
                CASE WHEN spine_uneven THEN format(
                    '{} ({} {:g} % {})', spine, CASE spine_direction WHEN 'out' THEN 'gets' ELSE 'sends' END, abs(spine_off_percent),
                    CASE WHEN spine_off_percent < 0 THEN 'less' ELSE 'more' END
                ) END
            ), ''),
            '; ' || nullif(concat_ws(
                ', ',
                CASE
                    WHEN uneven IS NULL THEN format('standard deviation on a leaf at most {:g} % ({})', most, most_at)
                    ELSE format('standard deviation on other leaves at most {:g} %', most_of_even)
                END,
                CASE WHEN NOT spine_uneven THEN format('spines within {:g} %', abs(spine_off_percent)) END
            ), '')
        ) AS title,
        format(
            'Standard deviation of bytes over the uplinks of a leaf, in percent of their mean. A leaf is uneven from {:g} % on '
            || '(dashed): here {} of {} directions of the leaves ({}).{}',
            threshold_percent, coalesce(len(uneven), 0), judged, leaves,
            CASE WHEN all_judged THEN '' ELSE ' Storage leaves have few flows and are not judged.' END
        ) AS conclusion
    FROM judgment
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY starts_with(switch, 'ST-'), length(switch), switch, direction
