/* ---
about: Bytes that each leaf gets from a spine in an hour, compared with those that it gets from the other spines, the smallest share first.
question: How full is the fabric, and how even?
params:
  spine: VARCHAR the spine, as spine-1
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [leaf, bytes, over_others]
ranked: over_others asc
--- */
-- over_others: bytes per uplink from this spine, over the mean of those from the other spines
WITH received AS (
    SELECT h.cluster, h.hour_utc, h.switch, u.spine, sum(h.in_bytes) AS bytes, sum(h.in_bytes) // count(*) AS per_uplink
    FROM metrics.port_hour AS h
    JOIN topology.hour_uplinks AS u
        ON u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port AND u.hour_utc = h.hour_utc
    WHERE h.hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.port_hour))
    GROUP BY ALL
),
compared AS (
    SELECT *, (sum(per_uplink) OVER of_leaf - per_uplink) / nullif(count(*) OVER of_leaf - 1, 0) AS others
    FROM received
    WINDOW of_leaf AS (PARTITION BY cluster, switch)
)
SELECT switch AS leaf, bytes, round(per_uplink / nullif(others, 0), 4) AS over_others, spine, hour_utc, cluster
FROM compared
WHERE spine = $spine
ORDER BY per_uplink / nullif(others, 0), cluster, switch
