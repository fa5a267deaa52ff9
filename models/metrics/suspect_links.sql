/* ---
about: Links where workbook and traffic contradict each other, or that carry data in one direction only. The port mapping stays as the workbook states it.
grain: [cluster, switch, port, kind]
columns:
  cluster: VARCHAR the cluster's folder
  switch: VARCHAR leaf or storage leaf
  port: VARCHAR port of the switch
  kind: VARCHAR access_on_idle_400g, uplink_no_data_in, uplink_no_data_out, uplink_silent_in, uplink_silent_out, server_in_other_group or peer_differs
  server: VARCHAR server of the port in the workbook; NULL on uplinks
  nic: VARCHAR that server's NIC; NULL on uplinks
  evidence: VARCHAR observation that contradicts the link
  candidate_port: VARCHAR port of the same switch that fits instead, where exactly one fits
  hours: BIGINT [1] loaded hours of the switch; the observation holds in every one of them, that of peer_differs in at least one
dimensions: [cluster, switch, port, kind, server]
measures:
  hours: max
checks:
  - kind in ('access_on_idle_400g', 'uplink_no_data_in', 'uplink_no_data_out', 'uplink_silent_in', 'uplink_silent_out',
      'server_in_other_group', 'peer_differs')
sources: docs/metrics/suspects.md
--- */
WITH loads AS (                -- bytes of a port over all loaded hours
    SELECT cluster, switch, port, port_class, {{ port_number('port') }} AS port_number, sum(in_bytes) AS in_bytes, sum(out_bytes) AS out_bytes
    FROM metrics.port_hour
    GROUP BY ALL
),

switch_hours AS (
    SELECT cluster, switch, count(DISTINCT hour_utc) AS hours
    FROM metrics.port_hour
    GROUP BY ALL
),

uplink_ways AS (               -- each direction of each uplink in each hour, beside the other direction
    SELECT
        h.cluster,
        h.switch,
        h.port,
        h.hour_utc,
        d.direction,
        CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END AS bytes,
        CASE d.direction WHEN 'in' THEN h.in_packets ELSE h.out_packets END AS packets,
        CASE d.direction WHEN 'in' THEN h.out_bytes ELSE h.in_bytes END AS other_bytes
    FROM metrics.port_hour AS h
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)  -- grain
    WHERE h.port_class IN ('uplink', 'storage_uplink')
),

idle_ways AS (                 -- control traffic of the fabric's own idle uplinks in the hour
    SELECT cluster, hour_utc, direction, median(bytes) AS bytes, median(packets) AS packets
    FROM uplink_ways
    WHERE bytes < {{ idle_bytes() }} AND other_bytes < {{ idle_bytes() }} AND packets > 0
    GROUP BY ALL
),

one_way AS (                   -- no data in any hour: under a millionth of the other direction
    SELECT
        u.cluster,
        u.switch,
        u.port,
        concat('uplink_', if(sum(u.packets) = 0, 'silent', 'no_data'), '_', u.direction) AS kind,
        concat(
            'in ', {{ count_text('count(*)', 'hour') }}, ' ',
            {{ bytes_text('sum(u.other_bytes)') }}, CASE u.direction WHEN 'in' THEN ' went out and ' ELSE ' came in and ' END,
            CASE sum(u.packets) WHEN 0 THEN 'no packet' ELSE {{ bytes_text('sum(u.bytes)') }} || ' in ' || {{ count_text('sum(u.packets)', 'packet') }} END,
            CASE u.direction WHEN 'in' THEN ' came in' ELSE ' went out' END,
            '; an idle uplink has ', {{ bytes_text('avg(coalesce(i.bytes, r.bytes))') }}, ' in ',
            {{ count_text('avg(coalesce(i.packets, r.packets))', 'packet') }}, ' an hour (',
            concat_ws(
                ' and ',
                CASE WHEN count(i.bytes) > 0 THEN 'median of the fabric''s own' END,
                CASE WHEN count(i.bytes) < count(*) THEN 'reference.idle_links' END
            ), ')'
        ) AS evidence
    FROM uplink_ways AS u
    JOIN switch_hours AS h USING (cluster, switch)  -- filter
    JOIN reference.idle_links AS r ON r.link = 'uplink' AND r.direction = u.direction  -- grain
    LEFT JOIN idle_ways AS i ON i.cluster = u.cluster AND i.hour_utc = u.hour_utc AND i.direction = u.direction  -- once
    GROUP BY u.cluster, u.switch, u.port, u.direction
    HAVING bool_and(u.other_bytes >= {{ idle_bytes() }} AND u.bytes < u.other_bytes / 1000000) AND count(*) = max(h.hours)
),

sheet AS (                     -- rows of the topology sheet, with the leaf group that the server's number belongs to
    SELECT t.cluster, t.switch, t.port, t.server, t.nic, t.server_number, {{ leaf_group('t.switch') }} AS leaf_group, s.home_group
    FROM staging.cluster_topology AS t
    JOIN topology.sheet_servers AS s USING (cluster, server)  -- check of sheet_servers
),

numbered AS (                  -- clusters where each group has known numbers of its own; else a number could belong to any group
    SELECT s.cluster
    FROM (SELECT cluster, count(DISTINCT leaf_group) AS leaf_groups FROM sheet GROUP BY cluster) AS s
    -- filter
    JOIN (SELECT cluster, count(DISTINCT group_base) AS leaf_groups FROM topology.sheet_servers GROUP BY cluster) AS g
        USING (cluster, leaf_groups)
),

misplaced AS (
    SELECT
        cluster,
        switch,
        port,
        'server_in_other_group' AS kind,
        server,
        nic,
        server || ' by its number belongs to ' || home_group || ', the sheet has it on ' || leaf_group AS evidence,
        NULL AS candidate_port
    FROM sheet
    SEMI JOIN numbered USING (cluster)  -- filter
    WHERE home_group <> leaf_group
),

unlisted AS (                  -- access ports with traffic but without a row in the sheet
    SELECT cluster, switch, port, port_number
    FROM loads
    ANTI JOIN staging.cluster_topology USING (cluster, switch, port)  -- filter
    WHERE port_class = 'access' AND in_bytes + out_bytes >= 1000000000
),

idle_400g AS (                 -- servers on a port that is no access port and moves no bytes; they fit on a free half of their slot's cage
    SELECT
        t.cluster,
        t.switch,
        t.port,
        'access_on_idle_400g' AS kind,
        t.server,
        t.nic,
        'no byte either way in any hour, on a port that is no 200G access port' AS evidence,
        CASE WHEN count(u.port) = 1 THEN min(u.port) END AS candidate_port
    FROM sheet AS t
    JOIN loads AS l USING (cluster, switch, port)  -- filter
    LEFT JOIN (SELECT DISTINCT cluster, leaf_group, group_base AS base FROM topology.sheet_servers) AS g USING (cluster, leaf_group)  -- once
    LEFT JOIN unlisted AS u  -- once
        ON u.cluster = t.cluster AND u.switch = t.switch AND u.port_number = (t.server_number - g.base + 1) // 2
    WHERE l.port_class <> 'access' AND l.in_bytes = 0 AND l.out_bytes = 0
    GROUP BY ALL
),

peers AS (                     -- other ends of an uplink: by the link table of each hour, and by the formula
    SELECT
        cluster,
        leaf AS switch,
        leaf_port AS port,
        spine || coalesce(' ' || spine_port, '') AS stated,
        inferred_spine || coalesce(' ' || inferred_spine_port, '') AS inferred,
        inferred_spine = spine AND (inferred_spine_port IS NULL OR inferred_spine_port = spine_port) AS is_as_inferred
    FROM topology.hour_uplinks
    WHERE source = 'link_table'
),

peer_differs AS (              -- link tables against the formula, and against each other
    SELECT
        cluster,
        switch,
        port,
        'peer_differs' AS kind,
        'link table: ' || string_agg(DISTINCT stated, ' and ' ORDER BY stated)
        || coalesce('; by the uplink formula: ' || min(inferred), '') AS evidence
    FROM peers
    GROUP BY cluster, switch, port
    HAVING count(DISTINCT stated) > 1 OR NOT bool_and(coalesce(is_as_inferred, true))
),

found AS (
    SELECT * FROM idle_400g
    UNION ALL
    SELECT * FROM misplaced
    UNION ALL
    SELECT cluster, switch, port, kind, NULL AS server, NULL AS nic, evidence, NULL AS candidate_port FROM one_way
    UNION ALL
    SELECT cluster, switch, port, kind, NULL AS server, NULL AS nic, evidence, NULL AS candidate_port FROM peer_differs
)

SELECT f.*, coalesce(h.hours, 0) AS hours
FROM found AS f
LEFT JOIN switch_hours AS h USING (cluster, switch)  -- once
