/* ---
about: Spine port of each leaf uplink, over all loaded hours; topology.hour_uplinks has it per hour.
grain: [cluster, leaf, leaf_port]
columns:
  cluster: VARCHAR the cluster's folder
  leaf: VARCHAR leaf or storage leaf
  leaf_port: VARCHAR the uplink, a port of the leaf
  spine: VARCHAR the spine at the other end
  spine_port: VARCHAR the spine's port; NULL where it is unknown, as for storage leaves without a link table
  source: VARCHAR link_table where a link table states the spine, else inferred:uplink_formula
  ends_stated: BIGINT [1] number of other ends in the link tables of all hours; with several, none of them is used
checks:
  - warn: ends_stated <= 1
    says: "{leaf} {leaf_port}: link tables name {ends_stated} different other ends, so none of them is used"
  - source in ('link_table', 'inferred:uplink_formula')
  # every uplink has a spine
  - none: SELECT p.cluster, p.switch, p.port FROM staging.switch_ports AS p
      ANTI JOIN this AS u ON u.cluster = p.cluster AND u.leaf = p.switch AND u.leaf_port = p.port
      WHERE p.port_class IN ('uplink', 'storage_uplink')
sources: docs/metrics/topology.md
--- */
WITH inferred AS (             -- spine by the formula, for every uplink that a file names
    SELECT
        cluster,
        switch AS leaf,
        port AS leaf_port,
        {{ uplink_spine('switch', 'port') }} AS spine,
        {{ uplink_spine_port('switch', 'port') }} AS spine_port
    FROM staging.switch_ports
    WHERE port_class IN ('uplink', 'storage_uplink')
),

stated AS (                    -- link tables of hours that name different ends of an uplink are ignored
    SELECT
        cluster,
        leaf,
        leaf_port,
        greatest(max(ends_stated), count(DISTINCT spine || ' ' || spine_port) FILTER (WHERE source = 'link_table')) AS ends,
        min(spine) FILTER (WHERE source = 'link_table') AS spine,
        min(spine_port) FILTER (WHERE source = 'link_table') AS spine_port
    FROM topology.hour_uplinks
    WHERE ends_stated > 0
    GROUP BY ALL
)

SELECT
    coalesce(i.cluster, s.cluster) AS cluster,
    coalesce(i.leaf, s.leaf) AS leaf,
    coalesce(i.leaf_port, s.leaf_port) AS leaf_port,
    CASE WHEN s.ends = 1 THEN s.spine ELSE i.spine END AS spine,
    CASE WHEN s.ends = 1 THEN s.spine_port ELSE i.spine_port END AS spine_port,
    CASE WHEN s.ends = 1 THEN 'link_table' ELSE 'inferred:uplink_formula' END AS source,
    coalesce(s.ends, 0) AS ends_stated
FROM inferred AS i
FULL JOIN stated AS s USING (cluster, leaf, leaf_port)  -- check, grain
WHERE i.spine IS NOT NULL OR s.ends = 1
