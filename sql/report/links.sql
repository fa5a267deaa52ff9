/* ---
about: Bytes between each leaf and each spine in an hour, the sum of all their uplinks, compared with an even share of the leaf's uplinks.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH one_way AS (                   -- uplinks that carry no data in one direction, in all loaded hours
    SELECT switch, port, regexp_extract(kind, '[a-z]+$') AS direction
    FROM metrics.suspect_links
    WHERE cluster = $cluster AND starts_with(kind, 'uplink_')
),
uplinks AS (                        -- one row per uplink and direction, seen from the leaf
    SELECT
        h.switch,
        h.port,
        u.spine,
        d.direction,
        regexp_extract(u.spine_port, '[0-9].*$') AS spine_port,
        CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END AS bytes
    FROM metrics.port_hour AS h
    JOIN topology.hour_uplinks AS u
        ON u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port AND u.hour_utc = h.hour_utc
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    WHERE h.cluster = $cluster AND h.hour_utc = $hour AND u.spine IS NOT NULL
),
pairs AS (
    SELECT
        u.switch AS leaf,
        u.direction,
        u.spine,
        count(*) AS uplinks,
        sum(u.bytes)::BIGINT AS bytes,
        max(u.bytes) AS fullest_bytes,
        string_agg(regexp_extract(u.port, '[0-9].*$'), ', ' ORDER BY length(u.port), u.port)
            FILTER (WHERE x.port IS NOT NULL) AS one_way_uplinks,
        string_agg(
            concat_ws(' ', regexp_extract(u.port, '[0-9].*$'), '→', u.spine, u.spine_port), ', '
            ORDER BY length(u.port), u.port
        ) FILTER (WHERE x.port IS NOT NULL) AS one_way_ends
    FROM uplinks AS u
    LEFT JOIN one_way AS x USING (switch, port, direction)
    GROUP BY ALL
),
shares AS (                         -- an even share is the same bytes over each uplink of the leaf in that direction
    SELECT
        *,
        sum(bytes) OVER leaf_way / sum(uplinks) OVER leaf_way * uplinks AS even_bytes,
        sum(bytes) OVER (PARTITION BY direction, spine) AS spine_bytes,
        sum(bytes) OVER (PARTITION BY direction) / count(DISTINCT spine) OVER (PARTITION BY direction) AS mean_spine_bytes
    FROM pairs
    WINDOW leaf_way AS (PARTITION BY leaf, direction)
),
shown AS (
    SELECT
        leaf,
        direction,
        spine,
        uplinks,
        bytes,
        round(100 * (bytes / nullif(even_bytes, 0) - 1), 1) AS off_even_percent,
        one_way_uplinks,
        one_way_ends,
        round(fullest_bytes / nullif(even_bytes / uplinks, 0), 3) AS fullest_over_mean,
        spine_bytes::BIGINT AS spine_bytes,
        round(100 * (spine_bytes / nullif(mean_spine_bytes, 0) - 1), 1) AS spine_off_mean_percent,
        100 * k.threshold AS spine_threshold_percent,
        row_number() OVER (ORDER BY abs(bytes / nullif(even_bytes, 0) - 1) DESC NULLS LAST, leaf, spine, direction) AS place,
        row_number() OVER (ORDER BY abs(spine_bytes / nullif(mean_spine_bytes, 0) - 1) DESC NULLS LAST, spine, direction, leaf)
            AS spine_place
    FROM shares
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'spine_out_of_line') AS k
),
off AS (                            -- how far the spine farthest from the mean of the spines is off it
    SELECT
        spine || CASE direction WHEN 'out' THEN ' gets ' ELSE ' sends ' END
        || format('{:g} % {}', abs(spine_off_mean_percent), CASE WHEN spine_off_mean_percent < 0 THEN 'less' ELSE 'more' END) AS spine_off,
        abs(spine_off_mean_percent) >= spine_threshold_percent AS is_uneven
    FROM shown
    WHERE spine_place = 1
),
told AS (
    SELECT
        coalesce(
            'Look at ' || string_agg(
                concat(leaf, ' ', one_way_ends, CASE direction WHEN 'in' THEN ' inward' ELSE ' outward' END), ', '
                ORDER BY length(leaf), leaf, direction
            ) FILTER (WHERE one_way_ends IS NOT NULL) || ': no data that way',
            'Every link carries data both ways'
        ) AS title,
        concat(
            format('Bytes between the loaded leaves ({}) and spines ({}). ', count(DISTINCT leaf), count(DISTINCT spine)),
            'A cell is the sum of all uplinks to a spine: how many percent it is above or below an even share of the ',
            'leaf''s uplinks. ',
            CASE WHEN count(one_way_ends) > 0 THEN 'A ✕ marks an uplink without data that way; max is the fullest '
            || 'other uplink between the same switches, as a multiple of the mean of the leaf''s uplinks. ' END,
            first(format('Farthest off is {} with {}, {}: {:g} %.', leaf, spine, direction, off_even_percent) ORDER BY place)
        ) AS conclusion,
        CASE
            WHEN any_value(off.spine_off) IS NULL THEN 'No bytes passed the spines'
            WHEN bool_and(off.is_uneven) THEN 'Spines are uneven: ' || any_value(off.spine_off) || ' than their mean'
            ELSE 'Spines are even: ' || any_value(off.spine_off) || ' than their mean, the largest difference'
        END AS spines_title,
        format(
            'Bytes between each spine and the loaded leaves ({}), in percent off the mean of the spines. A spine is uneven '
            || 'from {:g} % on (dashed). An uplink without data takes bytes from its spine.',
            count(DISTINCT leaf), any_value(spine_threshold_percent)
        ) AS spines_conclusion
    FROM shown
    CROSS JOIN off
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY starts_with(leaf, 'ST-'), length(leaf), leaf, direction, length(spine), spine
