/* ---
about: Bytes that every spine sent to and received from its leaves, as counted by the uplinks of the leaves. With all leaves loaded, both must agree, which tests the inferred uplinks.
partition: hour_utc
grain: [cluster, spine, hour_utc]
columns:
  cluster: VARCHAR the cluster's folder
  spine: VARCHAR the spine
  hour_utc: TIMESTAMP the hour
  to_leaf_bytes: BIGINT [B] bytes that entered leaves from the spine
  from_leaf_bytes: BIGINT [B] bytes that left leaves to the spine
  in_out_difference: 'DOUBLE [1] to_leaf_bytes / from_leaf_bytes - 1: relative difference of bytes sent and received; NULL where not checkable'
  over_mean: 'DOUBLE [1] its bytes in both directions over the mean of the checkable spines: how evenly spines are used; NULL where not checkable'
  leaves_seen: BIGINT [1] leaves and storage leaves with counters on an uplink to the spine
  uplinks_seen: BIGINT [1] uplinks to the spine with counters
  checkable: BOOLEAN true if all leaves of the spine are loaded, with all their uplinks to it
  checkable_note: VARCHAR why the spine is not checkable; NULL where it is checkable
time: hour_utc
dimensions: [cluster, spine, checkable]
measures:
  to_leaf_bytes, from_leaf_bytes: sum, shown in TB
  in_out_difference: none, shown in %
  over_mean: none
  leaves_seen: max
  uplinks_seen: sum except over hour_utc
checks:
  # every uplink goes to exactly one spine, which gets all of its bytes
  - none: WITH uplinks AS (
      SELECT h.in_bytes, h.out_bytes FROM metrics.port_hour AS h WHERE h.port_class IN ('uplink', 'storage_uplink') OR EXISTS (
      SELECT 1 FROM topology.hour_uplinks AS u WHERE u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port AND u.hour_utc = h.hour_utc))
      SELECT * FROM (SELECT sum(to_leaf_bytes) AS to_leaf, sum(from_leaf_bytes) AS from_leaf, sum(uplinks_seen) AS seen FROM this),
      (SELECT sum(in_bytes) AS in_bytes, sum(out_bytes) AS out_bytes, nullif(count(*), 0) AS uplinks FROM uplinks)
      WHERE to_leaf IS DISTINCT FROM in_bytes OR from_leaf IS DISTINCT FROM out_bytes OR seen IS DISTINCT FROM uplinks
  - warn: in_out_difference between -0.001 and 0.001 or in_out_difference is null
    says: "{spine} sent {to_leaf_bytes:B} and received {from_leaf_bytes:B}, a difference of {in_out_difference:.2%}"
  - checkable or in_out_difference is null and over_mean is null
sources: docs/metrics/balance.md
--- */
WITH links AS (
    SELECT
        u.cluster,
        u.spine,
        h.hour_utc,
        sum(h.in_bytes) AS to_leaf_bytes,
        sum(h.out_bytes) AS from_leaf_bytes,
        count(DISTINCT u.leaf) AS leaves_seen,
        count(*) AS uplinks_seen
    FROM topology.hour_uplinks AS u
    JOIN metrics.port_hour AS h  -- check
        ON h.cluster = u.cluster AND h.switch = u.leaf AND h.port = u.leaf_port AND h.hour_utc = u.hour_utc
    GROUP BY ALL
),

expected AS (                  -- three uplinks per leaf and spine, one per storage leaf and spine
    SELECT
        cluster,
        leaves + storage_leaves AS leaves,
        3 * leaves + storage_leaves AS uplinks,
        spines * (3 * leaves + storage_leaves) AS uplinks_of_all
    FROM reference.clusters
),

seen AS (                      -- with every uplink of the cluster loaded, a spine may have more or fewer uplinks than expected
    SELECT
        *,
        sum(uplinks_seen) OVER (PARTITION BY cluster, hour_utc) AS uplinks_seen_of_all
    FROM links
),

judged AS (
    SELECT
        l.cluster,
        l.spine,
        l.hour_utc,
        l.to_leaf_bytes,
        l.from_leaf_bytes,
        l.leaves_seen,
        l.uplinks_seen,
        coalesce(
            l.leaves_seen = e.leaves AND (l.uplinks_seen = e.uplinks OR l.uplinks_seen_of_all = e.uplinks_of_all),
            false
        ) AS checkable,
        CASE
            WHEN e.cluster IS NULL THEN 'not checkable, the number of leaves of this cluster is not known'
            WHEN l.leaves_seen < e.leaves THEN 'not checkable, ' || l.leaves_seen || ' of ' || e.leaves || ' leaves loaded'
            WHEN l.leaves_seen > e.leaves
                THEN 'not checkable, ' || l.leaves_seen || ' leaves loaded, ' || e.leaves || ' expected'
            WHEN l.uplinks_seen <> e.uplinks AND l.uplinks_seen_of_all <> e.uplinks_of_all
                THEN 'not checkable, ' || l.uplinks_seen || ' of ' || e.uplinks || ' uplinks loaded'
        END AS checkable_note
    FROM seen AS l
    LEFT JOIN expected AS e USING (cluster)  -- grain
),

means AS (
    SELECT cluster, hour_utc, sum(to_leaf_bytes + from_leaf_bytes) / count(*) AS mean_bytes
    FROM judged
    WHERE checkable
    GROUP BY cluster, hour_utc
)

SELECT
    j.cluster,
    j.spine,
    j.hour_utc,
    j.to_leaf_bytes,
    j.from_leaf_bytes,
    CASE WHEN j.checkable THEN j.to_leaf_bytes / nullif(j.from_leaf_bytes, 0) - 1 END AS in_out_difference,
    CASE WHEN j.checkable THEN (j.to_leaf_bytes + j.from_leaf_bytes) / nullif(m.mean_bytes, 0) END AS over_mean,
    j.leaves_seen,
    j.uplinks_seen,
    j.checkable,
    j.checkable_note
FROM judged AS j
LEFT JOIN means AS m USING (cluster, hour_utc)  -- once
