/* ---
about: What every spine sent to and got from its leaves, as their uplinks saw it. With all leaves loaded the two must agree, which tests the inferred uplinks.
partition: hour_utc
grain: [cluster, spine, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  spine: VARCHAR the spine
  hour_utc: TIMESTAMP the hour
  to_leaf_bytes: BIGINT [B] bytes that entered leaves from it
  from_leaf_bytes: BIGINT [B] bytes that left leaves to it
  imbalance: DOUBLE [1] to_leaf_bytes / from_leaf_bytes - 1; means something only where checkable
  leaves_seen: BIGINT [1] leaves and storage leaves with counters on an uplink to it
  checkable: BOOLEAN whether all its leaves are loaded
  checkable_note: VARCHAR why not; NULL where it is
time: hour_utc
dimensions: [cluster, spine, checkable]
measures:
  to_leaf_bytes, from_leaf_bytes: sum, shown in TB
  imbalance: none, shown in %
  leaves_seen: max
checks:
  - "warn: not checkable or imbalance between -0.001 and 0.001"
sources: docs/metrics/balance.md
--- */
WITH links AS (
    SELECT
        u.cluster,
        u.spine,
        h.hour_utc,
        sum(h.in_bytes) AS to_leaf_bytes,
        sum(h.out_bytes) AS from_leaf_bytes,
        count(DISTINCT u.leaf) AS leaves_seen
    FROM topology.uplinks AS u
    JOIN metrics.port_hour AS h ON h.cluster = u.cluster AND h.switch = u.leaf AND h.port = u.leaf_port
    GROUP BY u.cluster, u.spine, h.hour_utc
)

SELECT
    l.cluster,
    l.spine,
    l.hour_utc,
    l.to_leaf_bytes,
    l.from_leaf_bytes,
    l.to_leaf_bytes / nullif(l.from_leaf_bytes, 0) - 1 AS imbalance,
    l.leaves_seen,
    coalesce(l.leaves_seen = c.leaves + c.storage_leaves, false) AS checkable,
    CASE
        WHEN c.cluster IS NULL THEN 'not checkable, the number of leaves of this cluster is not known'
        WHEN l.leaves_seen < c.leaves + c.storage_leaves
            THEN 'not checkable, ' || l.leaves_seen || ' of ' || (c.leaves + c.storage_leaves) || ' leaves loaded'
        WHEN l.leaves_seen > c.leaves + c.storage_leaves
            THEN 'not checkable, ' || l.leaves_seen || ' leaves loaded, ' || (c.leaves + c.storage_leaves) || ' expected'
    END AS checkable_note
FROM links AS l
LEFT JOIN reference.clusters AS c ON c.cluster = l.cluster
