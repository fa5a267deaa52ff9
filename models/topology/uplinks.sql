/* ---
about: Which spine port each uplink of a leaf goes to.
grain: [cluster, leaf, leaf_port]
columns:
  cluster: VARCHAR the cluster's folder
  leaf: VARCHAR leaf or storage leaf
  leaf_port: VARCHAR the uplink, a port of the leaf
  spine: VARCHAR the spine at its other end
  spine_port: VARCHAR the spine's port; NULL where it is unknown, as for all storage leaves
  source: VARCHAR link_table where a table states it, else inferred:uplink_formula
checks:
  - source in ('link_table', 'inferred:uplink_formula')
sources: docs/metrics/topology.md
--- */
-- Ports 33..62 of Leaf-L are ten bundles of three, a bundle a spine; a spine has three ports a leaf, in order of
-- leaves. Ports 55..64 of a storage leaf go to one spine each. No sheet states it: bytes per spine agree with it.
SELECT
    cluster,
    switch AS leaf,
    port AS leaf_port,
    CASE port_class
        WHEN 'uplink' THEN 'spine-' || ((port_number - 33) // 3 + 1)
        ELSE 'spine-' || (port_number - 54)
    END AS spine,
    CASE port_class
        WHEN 'uplink' THEN 'FourHundredGigE1/0/' || (3 * (leaf_number - 1) + (port_number - 33) % 3 + 1)
    END AS spine_port,
    'inferred:uplink_formula' AS source
FROM staging.switch_ports
WHERE port_class IN ('uplink', 'storage_uplink')
