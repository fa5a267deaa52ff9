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
)
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
ORDER BY starts_with(leaf, 'ST-'), length(leaf), leaf, direction, length(spine), spine
