/* ---
about: Spine port of each leaf uplink, from the hour's link table, else from the uplink formula.
partition: hour_utc
grain: [cluster, leaf, leaf_port, hour_utc]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  leaf: VARCHAR leaf or storage leaf
  leaf_port: VARCHAR the uplink, a port of the leaf
  hour_utc: TIMESTAMP the hour
  spine: VARCHAR the spine at the other end
  spine_port: VARCHAR the spine's port; NULL where it is unknown, as for storage leaves without a link table
  source: VARCHAR link_table where the hour's link table states the spine, else inferred:uplink_formula
  inferred_spine: VARCHAR the spine by the uplink formula; NULL for a leaf without counters in the hour
  inferred_spine_port: VARCHAR the spine's port by the uplink formula; NULL where the formula does not say
  ends_stated: BIGINT [1] number of other ends in the hour's link table; with several, none of them is used
sources: docs/metrics/topology.md
--- */
-- Ports 33..62 of Leaf-L are ten bundles of three, a bundle a spine; a spine has three ports a leaf, in order of
-- leaves. Ports 55..64 of a storage leaf go to one spine each. No sheet states this rule; bytes per spine agree with it.
WITH inferred AS (
    SELECT
        cluster,
        switch AS leaf,
        port AS leaf_port,
        hour_utc,
        {{ uplink_spine('switch', 'port') }} AS spine,
        {{ uplink_spine_port('switch', 'port') }} AS spine_port
    FROM staging.port_files
    WHERE port_class IN ('uplink', 'storage_uplink')
),

either_end AS (                -- rows of the hour's link table, seen from the leaf
    SELECT cluster, switch AS leaf, port AS leaf_port, hour_utc, peer_switch AS spine, peer_port AS spine_port
    FROM staging.hour_link
    WHERE starts_with(peer_switch, 'spine-') AND peer_port IS NOT NULL AND NOT starts_with(switch, 'spine-')
    UNION ALL
    SELECT cluster, peer_switch AS leaf, peer_port AS leaf_port, hour_utc, switch AS spine, port AS spine_port
    FROM staging.hour_link
    WHERE starts_with(switch, 'spine-') AND peer_port IS NOT NULL AND NOT starts_with(peer_switch, 'spine-')
),

stated AS (                    -- contradicting rows of an uplink are ignored
    SELECT
        cluster,
        leaf,
        leaf_port,
        hour_utc,
        count(DISTINCT spine || ' ' || spine_port) AS ends_stated,
        CASE WHEN min(spine || ' ' || spine_port) = max(spine || ' ' || spine_port) THEN min(spine) END AS spine,
        min(spine_port) AS spine_port
    FROM either_end
    GROUP BY cluster, leaf, leaf_port, hour_utc
)

SELECT
    coalesce(i.cluster, s.cluster) AS cluster,
    coalesce(i.leaf, s.leaf) AS leaf,
    coalesce(i.leaf_port, s.leaf_port) AS leaf_port,
    coalesce(i.hour_utc, s.hour_utc) AS hour_utc,
    coalesce(s.spine, i.spine) AS spine,
    CASE WHEN s.spine IS NULL THEN i.spine_port ELSE s.spine_port END AS spine_port,
    CASE WHEN s.spine IS NULL THEN 'inferred:uplink_formula' ELSE 'link_table' END AS source,
    i.spine AS inferred_spine,
    i.spine_port AS inferred_spine_port,
    coalesce(s.ends_stated, 0) AS ends_stated
FROM inferred AS i
FULL JOIN stated AS s USING (cluster, leaf, leaf_port, hour_utc)  -- check of uplinks, once
WHERE i.spine IS NOT NULL OR s.spine IS NOT NULL
