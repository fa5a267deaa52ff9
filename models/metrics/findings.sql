/* ---
about: Findings to look at first, one row and one sentence per finding. Kinds, thresholds and their sources are in reference.finding_kinds.
grain: [kind, cluster, where_]
columns:
  kind: VARCHAR name of the kind
  cluster: VARCHAR the cluster's folder; all for published figures
  where_: VARCHAR place of the finding, as link, server, leaf with direction, spine ..
  rank: 'BIGINT [1] place in the list, 1 first: by kind, then the largest number'
  hour_utc: TIMESTAMP the hour, or the hour with the largest number; NULL where the finding is about all loaded hours
  severity: VARCHAR warning or note
  what: VARCHAR the kind in words
  number: DOUBLE number that is compared with the threshold
  unit: VARCHAR unit of the number
  sentence: VARCHAR the finding in a sentence with numbers
  so_what: VARCHAR consequence of the finding
  look_further: VARCHAR a command that shows more
time: hour_utc
dimensions: [cluster, kind, severity]
measures:
  others: none
checks:
  - severity in ('warning', 'note')
  - not null(sentence, so_what, look_further, number, unit, what)
  - unique(rank)
  # every suspect link and every suspect server has a finding
  - none: SELECT s.cluster, s.switch, s.port FROM metrics.suspect_links AS s WHERE NOT EXISTS (SELECT 1 FROM this AS f
      WHERE f.cluster = s.cluster AND (f.where_ = s.server OR f.where_ = concat(s.switch, ' ', regexp_extract(s.port, '[0-9].*$'))))
  - none: SELECT s.cluster, s.server, s.kind FROM metrics.suspect_servers AS s
      WHERE NOT EXISTS (SELECT 1 FROM this AS f WHERE f.cluster = s.cluster AND f.kind = s.kind AND f.where_ = s.server)
sources: docs/metrics/findings.md
--- */
WITH dead AS (                 -- uplinks that carry traffic in one direction only, with the bytes of each direction
    SELECT
        s.cluster,
        s.switch,
        s.port,
        CASE s.kind WHEN 'uplink_dead_out' THEN 'out' ELSE 'in' END AS direction,
        CAST(sum(h.in_bytes) AS BIGINT) AS in_bytes,
        CAST(sum(h.out_bytes) AS BIGINT) AS out_bytes,
        count(*) AS hours
    FROM metrics.suspect_links AS s
    JOIN metrics.port_hour AS h USING (cluster, switch, port)
    WHERE s.kind IN ('uplink_dead_in', 'uplink_dead_out')
    GROUP BY ALL
),

link_dead_one_way AS (         -- number: bytes of the working direction
    SELECT
        'link_dead_one_way' AS kind,
        cluster,
        switch || ' ' || {{ short_port('port') }} AS where_,
        NULL AS hour_utc,
        greatest(in_bytes, out_bytes) AS number,
        concat(
            'The uplink ', switch, ' ', {{ short_port('port') }}, ' is dead ',
            CASE direction WHEN 'out' THEN 'outward' ELSE 'inward' END, ': ',
            {{ bytes_text('in_bytes') }}, ' came in, ', {{ bytes_text('out_bytes') }}, ' went out',
            CASE WHEN hours > 1 THEN concat(' in ', hours, ' hours') END, '.'
        ) AS sentence,
        'warehouse sql -q suspect-links --kind uplink_dead_' || direction AS look_further
    FROM dead
),

cabled AS (
    SELECT
        cluster,
        server,
        kind,
        count(*) AS cables,
        string_agg(switch || ' ' || {{ short_port('port') }}, ', ' ORDER BY length(switch), switch, port) AS ports,
        string_agg(switch || ' ' || {{ short_port('candidate_port') }}, ', ' ORDER BY length(switch), switch, port)
            AS candidates,
        min(evidence) AS evidence
    FROM metrics.suspect_links
    WHERE server IS NOT NULL
    GROUP BY ALL
),

server_cabled_elsewhere AS (   -- number: rows of the workbook that contradict the server's number
    SELECT
        'server_cabled_elsewhere' AS kind,
        cluster,
        server AS where_,
        NULL AS hour_utc,
        CAST(sum(cables) AS BIGINT) AS number,
        string_agg(
            CASE kind
                WHEN 'server_in_other_group' THEN concat(evidence, ' (', ports, ').')
                ELSE concat(
                    'The sheet has ', server, ' on ', ports, ', where no byte moved in any hour',
                    '; the busy unlisted port ' || candidates || ' fits',
                    '.'
                )
            END,
            ' ' ORDER BY kind
        ) AS sentence,
        concat('warehouse sql -q nic --server ', server) AS look_further
    FROM cabled
    GROUP BY cluster, server
),

rails_differ AS (              -- number: rails that differ from all others of the group, in the worst loaded hour
    SELECT
        'rails_differ' AS kind,
        cluster,
        server AS where_,
        hour_utc,
        len(string_split(evidence, '; ')) AS number,
        concat(
            server, CASE WHEN rails IS NULL THEN ' uses no rail' ELSE concat(' uses rails ', rails) END,
            ', unlike the others of its traffic group: ', evidence, '.'
        ) AS sentence,
        concat('warehouse sql -q nic --server ', server, ' --hour ', strftime(hour_utc, '%Y-%m-%dT%H:00')) AS look_further
    FROM metrics.suspect_servers
    QUALIFY row_number() OVER (PARTITION BY cluster, server ORDER BY number DESC, hour_utc) = 1
),

dead_of_leaf AS (              -- dead uplinks per leaf and direction, ordered by port number
    SELECT
        cluster,
        switch,
        direction,
        string_agg({{ short_port('port') }}, ', ' ORDER BY length(port), port) AS ports,
        count(*) AS links
    FROM dead
    GROUP BY ALL
),

uplink_bytes AS (              -- one row per uplink of a GPU leaf, hour and direction, and if its spine has a dead uplink from that leaf
    SELECT
        h.cluster,
        h.switch,
        h.port,
        h.hour_utc,
        d.direction,
        CAST(CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END AS DECIMAL(38, 0)) AS bytes,
        bool_or(x.port IS NOT NULL) OVER (PARTITION BY h.cluster, h.switch, h.hour_utc, d.direction, s.spine) AS beside_dead
    FROM metrics.port_hour AS h
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    LEFT JOIN topology.hour_uplinks AS s
        ON s.cluster = h.cluster AND s.leaf = h.switch AND s.leaf_port = h.port AND s.hour_utc = h.hour_utc
    LEFT JOIN dead AS x
        ON x.cluster = h.cluster AND x.switch = h.switch AND x.port = h.port AND x.direction = d.direction
    WHERE h.port_class = 'uplink'
),

beside AS (                    -- balance of the uplinks to spines without a dead uplink, from integer sums as in uplink_balance
    SELECT
        cluster,
        switch,
        hour_utc,
        direction,
        arg_max(port, (bytes, port)) AS fullest,
        sqrt(
            CAST(
                count(*) FILTER (WHERE NOT beside_dead) * sum(bytes * bytes) FILTER (WHERE NOT beside_dead)
                - sum(bytes) FILTER (WHERE NOT beside_dead) * sum(bytes) FILTER (WHERE NOT beside_dead) AS DOUBLE
            )
        ) / nullif(CAST(sum(bytes) FILTER (WHERE NOT beside_dead) AS DOUBLE), 0) AS cov
    FROM uplink_bytes
    GROUP BY ALL
),

uneven_leaf AS (               -- number: standard deviation over mean, in the most uneven loaded hour
    SELECT
        'uneven_leaf' AS kind,
        b.cluster,
        b.switch || ' ' || b.direction AS where_,
        b.hour_utc,
        b.cov AS number,
        CASE
            WHEN d.ports IS NOT NULL AND a.cov < k.threshold
                THEN concat(
                    b.switch, CASE b.direction WHEN 'out' THEN ' sends over ' ELSE ' receives over ' END,
                    b.uplinks - d.links, ' of ', b.uplinks, ' uplinks: ', d.ports,
                    CASE d.links WHEN 1 THEN ' is' ELSE ' are' END, ' dead ',
                    CASE b.direction WHEN 'out' THEN 'outward' ELSE 'inward' END,
                    ', which is the reason. Standard deviation of the bytes: ', {{ percent_text('b.cov') }},
                    ' of the mean over all its uplinks, ', {{ percent_text('a.cov') }}, ' over those to other spines.'
                )
            ELSE concat(
                b.switch, CASE b.direction WHEN 'out' THEN ' sends' ELSE ' receives' END, ' unevenly over ', b.uplinks,
                ' uplinks: ', {{ short_port('a.fullest') }}, ' carries ', format('{:.2f}', b.max_over_mean),
                ' times the mean, the standard deviation is ', {{ percent_text('b.cov') }}, ' of it',
                '. The dead ' || d.ports || ' is not the whole reason',
                '.'
            )
        END AS sentence,
        concat(
            'warehouse sql -q leaf-uplinks --leaf ', b.switch, ' --way ', b.direction, ' --hour ',
            strftime(b.hour_utc, '%Y-%m-%dT%H:00')
        ) AS look_further
    FROM metrics.uplink_balance AS b
    JOIN beside AS a USING (cluster, switch, hour_utc, direction)
    LEFT JOIN dead_of_leaf AS d USING (cluster, switch, direction)
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'uneven_leaf') AS k
    QUALIFY row_number() OVER (PARTITION BY b.cluster, b.switch, b.direction ORDER BY b.cov DESC NULLS LAST, b.hour_utc) = 1
),

minutes_above AS (             -- minutes less even than the limit of a fair hash
    SELECT
        m.cluster,
        m.switch,
        m.direction,
        m.hour_utc,
        count(*) AS minutes,
        count(*) FILTER (WHERE m.cov > m.hash_null_p99) AS above,
        max(m.cov / m.hash_null_p99) AS largest,
        arg_max(m.minute_utc, (m.cov / m.hash_null_p99, m.minute_utc)) AS minute_utc
    FROM metrics.uplink_balance_minute AS m
    ANTI JOIN dead_of_leaf AS d USING (cluster, switch, direction)
    WHERE m.cov IS NOT NULL AND m.hash_null_p99 > 0
    GROUP BY ALL
),

spine_out_of_line AS (         -- number: relative difference of its bytes from the mean of the spines, where all leaves are loaded
    SELECT
        'spine_out_of_line' AS kind,
        cluster,
        spine AS where_,
        hour_utc,
        abs(over_mean - 1) AS number,
        concat(
            spine, ' carried ', {{ percent_text('abs(over_mean - 1)') }},
            CASE WHEN over_mean > 1 THEN ' more' ELSE ' less' END, ' than the mean of the spines: ',
            {{ bytes_text('to_leaf_bytes') }}, ' to the leaves, ', {{ bytes_text('from_leaf_bytes') }}, ' from them.'
        ) AS sentence,
        concat('warehouse sql -q spine-balance --hour ', strftime(hour_utc, '%Y-%m-%dT%H:00')) AS look_further
    FROM metrics.spine_hour
    WHERE checkable
    QUALIFY row_number() OVER (PARTITION BY cluster, spine ORDER BY abs(over_mean - 1) DESC NULLS LAST, hour_utc) = 1
),

uneven_minutes AS (            -- number: minutes above, more or further than chance has them, in the hour with the most
    SELECT
        'uneven_minutes' AS kind,
        cluster,
        switch || ' ' || direction AS where_,
        hour_utc,
        above AS number,
        concat(
            switch, CASE direction WHEN 'out' THEN ' sends' ELSE ' receives' END, ' less evenly than 99 of 100 fair hashes in ',
            above, ' of ', minutes, ' minutes (', format('{:.1f}', minutes / 100), ' by chance), at ',
            strftime(minute_utc, '%H:%M'), ' ', format('{:.2f}', largest), ' times their limit.'
        ) AS sentence,
        'warehouse sql -q uneven-minutes --leaf ' || switch || ' --hour ' || strftime(hour_utc, '%Y-%m-%dT%H:00') AS look_further
    FROM minutes_above
    WHERE largest >= 1.5 OR above >= 0.1 * minutes
    QUALIFY row_number() OVER (PARTITION BY cluster, switch, direction ORDER BY above DESC, largest DESC, hour_utc) = 1
),

peer_differs AS (              -- number: the uplink
    SELECT
        'peer_differs' AS kind,
        cluster,
        switch || ' ' || {{ short_port('port') }} AS where_,
        NULL AS hour_utc,
        1 AS number,
        concat('The uplink ', switch, ' ', {{ short_port('port') }}, ' ends elsewhere than inferred: ', evidence, '.') AS sentence,
        'warehouse sql -q suspect-links --kind peer_differs' AS look_further
    FROM metrics.suspect_links
    WHERE kind = 'peer_differs'
),

leaves AS (                    -- leaves with counters in any hour, and all that the workbook or reference.clusters knows
    SELECT
        s.cluster,
        count(*) FILTER (WHERE s.has_counters) AS loaded,
        greatest(count(*), coalesce(max(c.leaves + c.storage_leaves), 0)) AS known
    FROM topology.switches AS s
    LEFT JOIN reference.clusters AS c USING (cluster)
    WHERE s.role <> 'spine'
    GROUP BY s.cluster
),

loads AS (
    SELECT
        *,
        port_class IN ('uplink', 'storage_uplink') AS is_uplink,
        greatest(in_utilization, out_utilization) AS utilization
    FROM metrics.port_hour
    WHERE port_class <> 'management'
),

fullest AS (                   -- the fullest of all links and of the uplinks; the first of ties
    SELECT *
    FROM loads
    QUALIFY row_number() OVER (PARTITION BY cluster ORDER BY utilization DESC, hour_utc, switch, port) = 1
),

fullest_uplink AS (
    SELECT *
    FROM loads
    WHERE is_uplink
    QUALIFY row_number() OVER (PARTITION BY cluster ORDER BY utilization DESC, hour_utc, switch, port) = 1
),

fullest_link AS (              -- number: hourly mean over the line rate, in the busier direction
    SELECT
        'fullest_link' AS kind,
        f.cluster,
        f.switch || ' ' || {{ short_port('f.port') }} AS where_,
        f.hour_utc,
        f.utilization AS number,
        concat(
            CASE
                WHEN l.loaded < l.known
                    THEN concat('Of the links observed (', l.loaded, ' of ', l.known, ' leaves), the fullest is ')
                ELSE 'The fullest link is '
            END,
            f.switch, ' ', {{ short_port('f.port') }}, ' (', replace(f.port_class, '_', ' '), '): ',
            {{ percent_text('f.utilization') }}, ' of its line rate in the mean of the hour',
            CASE
                WHEN u.port IS NOT NULL AND NOT f.is_uplink
                    THEN concat(
                        '. The fullest uplink is ', u.switch, ' ', {{ short_port('u.port') }}, ': ',
                        {{ percent_text('u.utilization') }}, ' of its own'
                    )
            END, '.'
        ) AS sentence,
        concat(
            'warehouse sql -q ', CASE WHEN f.is_uplink THEN 'hottest-uplinks' ELSE 'busiest-ports' END,
            ' --hour ', strftime(f.hour_utc, '%Y-%m-%dT%H:00')
        ) AS look_further
    FROM fullest AS f
    LEFT JOIN fullest_uplink AS u USING (cluster)
    LEFT JOIN leaves AS l USING (cluster)
    WHERE f.utilization > 0
),

spines AS (                    -- clusters whose spines cannot be compared, and why
    SELECT cluster, max(checkable_note) AS note
    FROM metrics.spine_hour
    GROUP BY cluster
),

observation AS (               -- number: share of the inbound bytes in the rows right after the opening gap
    SELECT
        'observation' AS kind,
        q.cluster,
        count(DISTINCT q.switch) || ' switches' AS where_,
        NULL AS hour_utc,
        CAST(sum(CAST(q.gap_bytes_share * l.in_bytes AS DECIMAL(38, 3))) AS DOUBLE) / nullif(sum(l.in_bytes), 0) AS number,
        concat(
            {{ percent_text('number') }}, ' of the bytes that entered ', where_, ' came in opening gaps of up to ',
            format('{:.0f}', max(q.opening_gap_seconds)), ' s without a poll; ports have no row at ',
            format('{:,}', CAST(sum(q.missing_port_polls) AS BIGINT)), ' polls',
            '. Spines are ' || max(s.note), '.'
        ) AS sentence,
        'warehouse sql -q hour-quality' AS look_further
    FROM metrics.sampling_quality AS q
    JOIN metrics.leaf_hour AS l USING (cluster, switch, hour_utc)
    LEFT JOIN spines AS s USING (cluster)
    GROUP BY q.cluster
),

traffic AS (                   -- bytes of all servers per hour
    SELECT cluster, hour_utc, CAST(sum(rx_bytes + tx_bytes) AS BIGINT) AS bytes
    FROM metrics.server_hour
    GROUP BY ALL
),

server_leaves AS (             -- leaves that a server is plugged into, one NIC each; a pair such as GPU-121/122 counts as one server
    SELECT
        o.cluster,
        o.server,
        count(DISTINCT o.switch) AS known,
        count(DISTINCT o.switch) FILTER (WHERE s.has_counters) AS loaded
    FROM topology.port_owners AS o
    LEFT JOIN topology.switches AS s USING (cluster, switch)
    GROUP BY ALL
),

jobs AS (
    SELECT
        j.cluster,
        j.hour_utc,
        j.job_id,
        j.servers,
        j.bytes,
        {{ period_text('j.period_seconds', 'j.period_error_seconds', 'j.alias_seconds') }} AS period,
        arg_min(g.server, (length(g.server), g.server)) AS first_server,
        CASE                   -- loaded NICs of known NICs, where some are not loaded
            WHEN sum(l.loaded) >= sum(l.known) THEN NULL
            WHEN min(l.loaded) = max(l.loaded) AND min(l.known) = max(l.known)
                THEN min(l.loaded) || ' of ' || min(l.known) || ' per server'
            ELSE sum(l.loaded) || ' of ' || sum(l.known)
        END AS loaded_nics
    FROM metrics.job_periods AS j
    JOIN metrics.traffic_groups AS g ON g.cluster = j.cluster AND g.hour_utc = j.hour_utc AND g.group_id = j.job_id
    LEFT JOIN server_leaves AS l ON l.cluster = g.cluster AND l.server = g.server
    GROUP BY ALL
),

job_trades_most AS (           -- number: bytes received and sent by the servers of the job
    SELECT
        'job_trades_most' AS kind,
        j.cluster,
        'group of ' || j.first_server AS where_,
        j.hour_utc,
        j.bytes AS number,
        concat(
            j.servers, ' servers pulse together, the first is ', j.first_server, '. They received and sent ',
            {{ bytes_text('j.bytes') }}, ' in an hour', ' at their NICs on loaded leaves (' || j.loaded_nics || ')', ', ',
            {{ percent_text('j.bytes / nullif(t.bytes, 0)') }}, ' of the bytes of all servers',
            CASE WHEN j.loaded_nics IS NULL THEN ' on the loaded leaves' ELSE ' there' END,
            '. Their period is ', coalesce(j.period, 'not resolved'), '.'
        ) AS sentence,
        concat('warehouse sql -q traffic-jobs --hour ', strftime(j.hour_utc, '%Y-%m-%dT%H:00')) AS look_further
    FROM jobs AS j
    JOIN traffic AS t USING (cluster, hour_utc)
    WHERE j.bytes > 0
    QUALIFY row_number() OVER (PARTITION BY j.cluster ORDER BY j.bytes DESC, j.hour_utc, j.job_id) = 1
),

claims_differ AS (             -- number: published figures that differ from ours
    SELECT
        'claims_differ' AS kind,
        'all' AS cluster,
        'published figures' AS where_,
        NULL AS hour_utc,
        count(*) FILTER (WHERE verdict IN ('differs', 'contradicted')) AS number,
        concat(
            count(*) FILTER (WHERE verdict IN ('differs', 'contradicted')), ' of ', count(*) FILTER (WHERE verdict <> 'no_data'),
            ' published figures that the loaded files tell differ from ours',
            '; ' || nullif(count(*) FILTER (WHERE verdict = 'contradicted'), 0) || ' of them from another published figure, too',
            '.'
        ) AS sentence,
        'warehouse sql -q claims' AS look_further
    FROM metrics.published_claims
),

candidates AS (
    SELECT * FROM link_dead_one_way
    UNION ALL BY NAME
    SELECT * FROM server_cabled_elsewhere
    UNION ALL BY NAME
    SELECT * FROM rails_differ
    UNION ALL BY NAME
    SELECT * FROM uneven_leaf
    UNION ALL BY NAME
    SELECT * FROM uneven_minutes
    UNION ALL BY NAME
    SELECT * FROM spine_out_of_line
    UNION ALL BY NAME
    SELECT * FROM peer_differs
    UNION ALL BY NAME
    SELECT * FROM fullest_link
    UNION ALL BY NAME
    SELECT * FROM observation
    UNION ALL BY NAME
    SELECT * FROM job_trades_most
    UNION ALL BY NAME
    SELECT * FROM claims_differ
)

SELECT
    c.kind,
    c.cluster,
    c.where_,
    row_number() OVER (ORDER BY k.position, c.number DESC, c.cluster, c.where_) AS rank,
    c.hour_utc,
    k.severity,
    k.what,
    CAST(c.number AS DOUBLE) AS number,
    k.unit,
    c.sentence,
    k.so_what,
    c.look_further
FROM candidates AS c
JOIN reference.finding_kinds AS k USING (kind)
WHERE c.number >= k.threshold
