/* ---
about: Findings to look at first, one row and one sentence per finding, consequences below their cause. Kinds, sentences, thresholds and their sources are in reference.finding_kinds.
grain: [kind, cluster, where_]
columns:
  kind: VARCHAR name of the kind
  cluster: VARCHAR the cluster's folder; all for published figures
  where_: VARCHAR place of the finding, as link, server, leaf with direction, spine ..
  rank: 'BIGINT [1] place in the list, 1 first: by kind, then the largest number; a consequence follows its cause'
  hour_utc: TIMESTAMP the hour, or the hour with the largest number; NULL where the finding is about all loaded hours
  severity: VARCHAR warning or note
  what: VARCHAR the kind in words
  number: DOUBLE number that is compared with the threshold
  unit: VARCHAR unit of the number
  sentence: VARCHAR the finding in a sentence with numbers
  so_what: VARCHAR consequence of the finding
  look_further: VARCHAR a command that shows more
  cause: VARCHAR place of the finding that this one is a consequence of; NULL where there is none
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
      WHERE f.cluster = s.cluster AND (list_contains(string_split(f.where_, ' and '), s.server) OR f.where_ = concat(s.switch, ' ', regexp_extract(s.port, '[0-9].*$'))))
  - none: SELECT s.cluster, s.server, s.kind FROM metrics.suspect_servers AS s
      WHERE NOT EXISTS (SELECT 1 FROM this AS f WHERE f.cluster = s.cluster AND f.kind = s.kind AND f.where_ = s.server)
sources: docs/metrics/findings.md
--- */
-- Each kind has a query of its name: place, hour, number, cause, and the facts that its sentence names. Several hours of a
-- place are candidates: the one with the largest number is the finding.
WITH one_way AS (              -- uplinks without data in one direction; number: bytes of the other
    SELECT
        s.cluster, s.switch, s.port, {{ link_name('s.switch', 's.port') }} AS where_,
        regexp_replace(s.kind, '_(in|out)$', '') AS kind,
        regexp_extract(s.kind, '[a-z]+$') AS direction,
        s.evidence,
        greatest(sum(h.in_bytes), sum(h.out_bytes)) AS number
    FROM metrics.suspect_links AS s
    JOIN metrics.port_hour AS h USING (cluster, switch, port)  -- check, whole
    WHERE starts_with(s.kind, 'uplink_')
    GROUP BY ALL
),

uplink_silent AS (
    SELECT * FROM one_way WHERE kind = 'uplink_silent'
),

uplink_no_data AS (
    SELECT * FROM one_way WHERE kind = 'uplink_no_data'
),

lost_ways AS (                 -- spines that a leaf's uplink sends nothing to
    SELECT o.cluster, u.hour_utc, u.spine, min_by(o.where_, (length(o.where_), o.where_)) AS cause, list(o.switch ORDER BY o.switch) AS leaves
    FROM one_way AS o
    JOIN topology.hour_uplinks AS u ON u.cluster = o.cluster AND u.leaf = o.switch AND u.leaf_port = o.port  -- filter
    WHERE o.direction = 'out'
    GROUP BY ALL
),

from_spines AS (               -- bytes of a leaf from each spine, per uplink
    SELECT h.cluster, h.hour_utc, h.switch, u.spine, sum(h.in_bytes) // count(*) AS bytes
    FROM metrics.port_hour AS h
    JOIN topology.hour_uplinks AS u  -- filter
        ON u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port AND u.hour_utc = h.hour_utc
    SEMI JOIN lost_ways AS l ON l.cluster = h.cluster AND l.hour_utc = h.hour_utc  -- filter
    GROUP BY ALL
),

less AS (                      -- share by which a leaf gets less from a spine than from the others
    SELECT *, (sum(bytes) OVER of_leaf - bytes) / nullif(count(*) OVER of_leaf - 1, 0) AS others, 1 - bytes / nullif(others, 0) AS share
    FROM from_spines
    WINDOW of_leaf AS (PARTITION BY cluster, hour_utc, switch)
),

less_from_spine AS (           -- number: the largest such share
    SELECT
        s.cluster, s.spine AS where_, s.hour_utc, max(s.share) AS number, l.cause,
        count(*) AS leaves,
        list(s.switch ORDER BY {{ natural('s.switch') }}) AS names,
        100 * number AS most_percent,
        CASE WHEN round(100 * min(s.share)) < round(100 * number) THEN 100 * min(s.share) END AS least_percent
    FROM less AS s
    JOIN lost_ways AS l USING (cluster, hour_utc, spine)  -- filter
    WHERE s.share >= {{ threshold('less_from_spine') }} AND s.others >= {{ idle_bytes() }} AND NOT list_contains(l.leaves, s.switch)
    GROUP BY s.cluster, s.spine, s.hour_utc, l.cause
),

misplaced AS (                 -- servers in another group than their number's: their physical port, and that of their number
    SELECT
        s.cluster, s.server, h.server_number, h.leaf_group, h.home_group,
        (h.slot + 1) // 2 AS home_port,
        CASE WHEN count(DISTINCT {{ port_number('s.port') }}) = 1 THEN min({{ port_number('s.port') }}) END AS port_number,
        count(*) AS cables,
        count(p.switch) AS ports,
        sum(p.bytes) AS bytes
    FROM metrics.suspect_links AS s
    JOIN topology.sheet_servers AS h USING (cluster, server)  -- check of sheet_servers
    -- once
    LEFT JOIN (SELECT cluster, switch, port, sum(in_bytes + out_bytes) AS bytes FROM metrics.port_hour GROUP BY ALL) AS p
        ON p.cluster = s.cluster AND p.switch = s.switch AND p.port = s.port
    WHERE s.kind = 'server_in_other_group'
    GROUP BY ALL
),

servers_exchanged AS (         -- number: rows of the workbook of both
    SELECT
        a.cluster, a.server || ' and ' || b.server AS where_, a.cables + b.cables AS number,
        a.server AS first_server, b.server AS second_server, a.home_port AS first_port, b.home_port AS second_port,
        a.home_group AS first_group, b.home_group AS second_group,
        a.ports + b.ports AS ports,
        coalesce(a.bytes, 0) + b.bytes AS bytes
    FROM misplaced AS a
    JOIN misplaced AS b  -- filter
        ON
            b.cluster = a.cluster AND b.server_number > a.server_number AND b.leaf_group = a.home_group AND b.home_group = a.leaf_group
            AND b.port_number = a.home_port AND b.home_port = a.port_number
),

cabled AS (                    -- rows of the workbook that contradict a server's number or the traffic
    SELECT
        s.*,
        (length(s.switch), s.switch, s.port) AS place,
        {{ link_name('s.switch', 's.port') }} AS link,
        {{ link_name('s.switch', 's.candidate_port') }} AS candidate,
        s.kind = 'server_in_other_group' AS is_of_number
    FROM metrics.suspect_links AS s
    -- check, filter
    ANTI JOIN servers_exchanged AS x ON x.cluster = s.cluster AND s.server IN (x.first_server, x.second_server)
    WHERE s.server IS NOT NULL
),

server_cabled_elsewhere AS (   -- number: these rows
    SELECT
        cluster, server AS where_, count(*) AS number,
        min(evidence) FILTER (WHERE is_of_number) AS evidence,
        string_agg(link, ', ' ORDER BY place) FILTER (WHERE is_of_number) AS group_ports,
        string_agg(link, ', ' ORDER BY place) FILTER (WHERE NOT is_of_number AND candidate IS NOT NULL) AS idle_ports,
        string_agg(candidate, ', ' ORDER BY place) FILTER (WHERE NOT is_of_number) AS candidates,
        string_agg(link, ', ' ORDER BY place) FILTER (WHERE NOT is_of_number AND candidate IS NULL) AS lone_ports
    FROM cabled
    GROUP BY cluster, server
),

rails_differ AS (              -- number: rails that differ from all others of the group
    SELECT
        cluster, server AS where_, hour_utc, differing_rails AS number,
        rails, CASE WHEN rails IS NULL THEN server END AS idle_server, evidence
    FROM metrics.suspect_servers
),

uplink_bytes AS (              -- bytes of an uplink of a GPU leaf, if it is one-way, and if one to the same spine is
    SELECT
        h.cluster, h.switch, h.port, h.hour_utc, d.direction,
        CAST(CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END AS DECIMAL(38, 0)) AS bytes,
        x.port IS NOT NULL AS is_one_way,
        bool_or(x.port IS NOT NULL) OVER (PARTITION BY h.cluster, h.switch, h.hour_utc, d.direction, s.spine) AS is_beside
    FROM metrics.port_hour AS h
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)  -- grain
    LEFT JOIN topology.hour_uplinks AS s  -- once
        ON s.cluster = h.cluster AND s.leaf = h.switch AND s.leaf_port = h.port AND s.hour_utc = h.hour_utc
    -- once
    LEFT JOIN one_way AS x ON x.cluster = h.cluster AND x.switch = h.switch AND x.port = h.port AND x.direction = d.direction
    WHERE h.port_class = 'uplink'
),

uplink_sums AS (               -- balance of the uplinks to spines without a one-way uplink, from integer sums as in uplink_balance
    SELECT
        cluster, switch, hour_utc, direction,
        {{ short_port('arg_max(port, (bytes, port))') }} AS fullest,
        count(*) FILTER (WHERE is_one_way) AS links,
        string_agg({{ short_port('port') }}, ', ' ORDER BY length(port), port) FILTER (WHERE is_one_way) AS ports,
        min_by({{ link_name('switch', 'port') }}, (length(port), port)) FILTER (WHERE is_one_way) AS cause,
        count(*) FILTER (WHERE NOT is_beside) AS others,
        sum(bytes) FILTER (WHERE NOT is_beside) AS total,
        sum(bytes * bytes) FILTER (WHERE NOT is_beside) AS squares,
        sqrt(CAST(others * squares - total * total AS DOUBLE)) / nullif(CAST(total AS DOUBLE), 0) AS others_cov,
        links > 0 AND coalesce(others_cov < {{ threshold('uneven_leaf') }}, false) AS is_reason
    FROM uplink_bytes
    GROUP BY cluster, switch, hour_utc, direction
),

uneven_leaf AS (               -- number: standard deviation over mean
    SELECT
        b.cluster, b.switch || ' ' || b.direction AS where_, b.hour_utc, b.cov AS number,
        CASE WHEN o.is_reason THEN o.cause END AS cause,
        b.switch AS leaf, b.direction, b.uplinks, b.max_over_mean, o.others_cov, o.links,
        CASE WHEN o.is_reason THEN b.uplinks - o.links END AS alive,
        CASE WHEN o.is_reason THEN o.ports END AS reason_ports,
        CASE WHEN NOT o.is_reason THEN o.ports END AS part_ports,
        CASE WHEN NOT o.is_reason THEN o.fullest END AS fullest
    FROM metrics.uplink_balance AS b
    JOIN uplink_sums AS o USING (cluster, switch, hour_utc, direction)  -- filter
),

spine_out_of_line AS (         -- number: relative difference of its bytes from the mean of the spines, where all leaves are loaded
    SELECT
        cluster, spine AS where_, hour_utc, abs(over_mean - 1) AS number,
        over_mean > 1 AS is_more, to_leaf_bytes, from_leaf_bytes
    FROM metrics.spine_hour
    WHERE checkable
),

full_nics AS (                 -- NICs with as many seconds near their line rate as the threshold has
    SELECT
        h.cluster, h.hour_utc, o.server,
        count(*) AS nics, sum(h.full_seconds) AS full_seconds, sum(h.missing_polls) AS missing_polls
    FROM metrics.port_hour AS h
    JOIN topology.hour_owners AS o USING (cluster, switch, port, hour_utc)  -- filter
    WHERE h.full_seconds >= {{ threshold('nics_at_line_rate') }}
    GROUP BY h.cluster, h.hour_utc, o.server
),

nics_at_line_rate AS (         -- number: port-seconds above 90 % of the line rate
    SELECT
        f.cluster, {{ count_text('count(*)', 'server') }} AS where_, f.hour_utc, sum(f.full_seconds) AS number,
        count(*) AS servers,
        list(f.server ORDER BY f.full_seconds DESC, {{ natural('f.server') }}) AS names,
        sum(f.nics) AS nics,
        nullif(sum(f.missing_polls), 0) AS missing_polls,
        q.missing_polls AS all_missing_polls
    FROM full_nics AS f
    -- whole
    JOIN (SELECT cluster, hour_utc, sum(missing_port_polls) AS missing_polls FROM metrics.sampling_quality GROUP BY ALL) AS q
        USING (cluster, hour_utc)
    GROUP BY f.cluster, f.hour_utc, q.missing_polls
),

uneven_minutes AS (            -- number: minutes less even than the limit of a fair hash, if they are more or further than by chance
    SELECT
        m.cluster, m.switch || ' ' || m.direction AS where_, m.hour_utc, count(*) FILTER (WHERE m.cov > m.hash_null_p99) AS number,
        m.switch AS leaf, m.direction,
        count(*) AS minutes,
        minutes / 100 AS by_chance,
        max(m.cov / m.hash_null_p99) AS largest,
        arg_max(m.minute_utc, (m.cov / m.hash_null_p99, m.minute_utc)) AS minute_utc
    FROM metrics.uplink_balance_minute AS m
    ANTI JOIN one_way AS d USING (cluster, switch, direction)  -- filter
    WHERE m.cov IS NOT NULL AND m.hash_null_p99 > 0
    GROUP BY m.cluster, m.switch, m.direction, m.hour_utc
    HAVING largest >= 1.5 OR number >= 0.1 * minutes
),

peer_differs AS (              -- number: the uplink
    SELECT cluster, {{ link_name('switch', 'port') }} AS where_, 1 AS number, evidence
    FROM metrics.suspect_links
    WHERE kind = 'peer_differs'
),

leaves AS (                    -- leaves with counters in any hour, and all that the workbook or reference.clusters knows
    SELECT
        s.cluster,
        count(*) FILTER (WHERE s.has_counters) AS loaded,
        greatest(count(*), coalesce(max(c.leaves + c.storage_leaves), 0)) AS known,
        loaded < known AS is_part
    FROM topology.switches AS s
    LEFT JOIN reference.clusters AS c USING (cluster)  -- once
    WHERE s.role <> 'spine'
    GROUP BY s.cluster
),

fullest AS (                   -- the fullest uplink of a cluster and the fullest other link; the first of ties
    SELECT
        *,
        port_class IN ('uplink', 'storage_uplink') AS is_uplink,
        greatest(in_utilization, out_utilization) AS utilization,
        {{ link_name('switch', 'port') }} AS link
    FROM metrics.port_hour
    WHERE port_class <> 'management'
    QUALIFY row_number() OVER (PARTITION BY cluster, is_uplink ORDER BY utilization DESC, hour_utc, switch, port) = 1
),

fullest_link AS (              -- number: hourly mean over the line rate, in the busier direction
    SELECT
        f.cluster, f.link AS where_, f.hour_utc, f.utilization AS number,
        CASE WHEN l.is_part THEN l.loaded END AS loaded,
        l.known,
        CASE WHEN NOT coalesce(l.is_part, false) THEN '' END AS all_links,
        replace(f.port_class, '_', ' ') AS port_class,
        f.is_uplink,
        u.link AS uplink,
        u.utilization AS uplink_utilization
    FROM fullest AS f
    LEFT JOIN fullest AS u ON u.cluster = f.cluster AND u.is_uplink AND NOT f.is_uplink  -- once
    LEFT JOIN leaves AS l ON l.cluster = f.cluster  -- once
    WHERE f.utilization > 0
),

observation AS (               -- number: share of the inbound bytes in the rows right after the opening gap
    SELECT
        q.cluster,
        count(DISTINCT q.switch) || ' switches' AS where_,
        CAST(sum(CAST(q.gap_bytes_share * l.in_bytes AS DECIMAL(38, 3))) AS DOUBLE) / nullif(sum(l.in_bytes), 0) AS number,
        max(q.opening_gap_seconds) AS gap_seconds,
        sum(q.missing_port_polls) AS missing_polls,
        max(s.note) AS note
    FROM metrics.sampling_quality AS q
    JOIN metrics.leaf_hour AS l USING (cluster, switch, hour_utc)  -- whole
    -- once
    LEFT JOIN (SELECT cluster, max(checkable_note) AS note FROM metrics.spine_hour GROUP BY cluster) AS s USING (cluster)
    GROUP BY q.cluster
),

server_leaves AS (             -- leaves that a server is plugged into, one NIC each; a pair such as GPU-121/122 counts as one server
    SELECT
        o.cluster, o.server,
        count(DISTINCT o.switch) AS known,
        count(DISTINCT o.switch) FILTER (WHERE s.has_counters) AS loaded
    FROM topology.port_owners AS o
    LEFT JOIN topology.switches AS s USING (cluster, switch)  -- once
    GROUP BY ALL
),

sides AS (                     -- bytes of a server with all its NICs on loaded leaves in each direction, beside the other
    SELECT
        h.cluster, h.hour_utc, h.server, d.direction,
        CASE d.direction WHEN 'receive' THEN h.rx_bytes ELSE h.tx_bytes END AS bytes,
        CASE d.direction WHEN 'receive' THEN h.tx_bytes ELSE h.rx_bytes END AS other_bytes
    FROM metrics.server_hour AS h
    JOIN server_leaves AS l ON l.cluster = h.cluster AND l.server = h.server AND l.loaded = l.known  -- filter
    CROSS JOIN (VALUES ('receive'), ('send')) AS d (direction)  -- grain
),

one_way_servers AS (           -- number: bytes of the servers that move a twentieth of them or less the other way
    SELECT
        cluster, direction AS where_, hour_utc, sum(bytes) AS number,
        count(*) AS servers,
        list(server || ' (' || {{ bytes_text('bytes') }} || ')' ORDER BY bytes DESC, server) AS names,
        CASE WHEN direction = 'receive' THEN names END AS receivers,
        CASE WHEN direction = 'send' THEN names END AS senders,
        sum(other_bytes) AS other_bytes
    FROM sides
    WHERE bytes >= {{ threshold('one_way_servers') }} AND 20 * other_bytes < bytes
    GROUP BY cluster, direction, hour_utc
),

idle_servers AS (              -- number: share of the servers that moved next to nothing
    SELECT
        h.cluster,
        count(*) FILTER (WHERE h.rx_bytes + h.tx_bytes < {{ idle_bytes() }}) AS idle,
        {{ count_text('idle', 'server') }} AS where_, h.hour_utc, idle / count(*) AS number,
        count(*) AS servers,
        {{ loaded_nics_text('l.loaded', 'l.known') }} AS loaded_nics,
        CASE WHEN loaded_nics IS NULL THEN '' END AS all_nics,
        CASE WHEN loaded_nics IS NOT NULL THEN '' END AS some_nics
    FROM metrics.server_hour AS h
    LEFT JOIN server_leaves AS l USING (cluster, server)  -- once
    GROUP BY h.cluster, h.hour_utc
),

traffic AS (                   -- bytes of all servers per hour
    SELECT cluster, hour_utc, CAST(sum(rx_bytes + tx_bytes) AS BIGINT) AS bytes
    FROM metrics.server_hour
    GROUP BY ALL
),

jobs AS (
    SELECT
        j.cluster, j.hour_utc, j.group_id, j.servers, j.bytes,
        j.bytes / nullif(t.bytes, 0) AS share,
        {{ period_text('j.period_seconds', 'j.period_error_seconds', 'j.alias_seconds') }} AS period,
        arg_min(g.server, (length(g.server), g.server)) AS first_server,
        {{ loaded_nics_text('l.loaded', 'l.known') }} AS loaded_nics
    FROM metrics.job_periods AS j
    JOIN traffic AS t USING (cluster, hour_utc)  -- whole
    -- check of job_periods, whole
    JOIN metrics.traffic_groups AS g ON g.cluster = j.cluster AND g.hour_utc = j.hour_utc AND g.group_id = j.group_id
    LEFT JOIN server_leaves AS l ON l.cluster = g.cluster AND l.server = g.server  -- once
    GROUP BY ALL
),

job_trades_most AS (           -- number: bytes received and sent by the servers of the job
    SELECT
        cluster, 'group of ' || first_server AS where_, hour_utc, bytes AS number,
        servers, first_server, share, loaded_nics, loaded_nics IS NULL AS has_all_nics, coalesce(period, 'not resolved') AS period
    FROM jobs
    WHERE bytes > 0
),

job_pauses AS (                -- number: seconds of an hour in which a job with more than a tenth of the bytes pauses
    SELECT
        j.cluster, 'group of ' || j.first_server AS where_, j.hour_utc, sum(p.seconds) AS number,
        j.first_server, j.share,
        list(
            strftime(p.start_utc, '%H:%M:%S') || ' to ' || strftime(p.start_utc + to_seconds(p.seconds), '%H:%M:%S') ORDER BY p.start_utc
        ) AS times
    FROM metrics.job_pauses AS p
    JOIN jobs AS j USING (cluster, hour_utc, group_id)  -- check of job_pauses
    WHERE j.share > 0.1
    GROUP BY j.cluster, j.hour_utc, j.first_server, j.share
),

claims_differ AS (             -- number: published figures that differ from ours
    SELECT
        'all' AS cluster,
        'published figures' AS where_,
        count(*) FILTER (WHERE verdict IN ('differs', 'contradicted')) AS number,
        count(*) FILTER (WHERE verdict <> 'no_data') AS told,
        nullif(count(*) FILTER (WHERE verdict = 'contradicted'), 0) AS contradicted
    FROM metrics.published_claims
),

candidates AS (
    {{ facts_of(['uplink_silent', 'uplink_no_data', 'less_from_spine', 'servers_exchanged', 'server_cabled_elsewhere', 'rails_differ']) }}
    UNION ALL
    {{ facts_of(['uneven_leaf', 'spine_out_of_line', 'nics_at_line_rate', 'job_pauses', 'uneven_minutes', 'peer_differs']) }}
    UNION ALL
    {{ facts_of(['one_way_servers', 'idle_servers', 'fullest_link', 'observation', 'job_trades_most', 'claims_differ']) }}
),

found AS (
    SELECT c.*, CAST(c.facts ->> '$.hour_utc' AS TIMESTAMP) AS hour_utc, c.facts ->> '$.cause' AS cause, k.* EXCLUDE (kind)
    FROM candidates AS c
    JOIN reference.finding_kinds AS k USING (kind)  -- filter
    WHERE c.number >= k.threshold
    QUALIFY
        row_number() OVER (
            PARTITION BY c.kind, c.cluster, CASE k.one_per WHEN 'place' THEN c.where_ END
            ORDER BY c.number DESC, hour_utc, c.where_
        ) = 1
),

ranked AS (
    SELECT
        f.kind, f.cluster, f.where_,
        row_number() OVER (
            ORDER BY
                coalesce(c.position, f.position), coalesce(c.number, f.number) DESC, f.cluster, coalesce(c.where_, f.where_),
                c.where_ IS NOT NULL, f.position, f.number DESC, f.where_
        ) AS rank,
        f.hour_utc, f.severity, f.what, f.number, f.unit,
        {{ sentence('f.sentence', 'f.facts') }} AS sentence,
        {{ sentence('f.so_what', 'f.facts') }} AS so_what,
        {{ sentence('f.look_further', 'f.facts') }} AS look_further,
        f.cause
    FROM found AS f
    -- check, once
    LEFT JOIN found AS c ON c.cluster = f.cluster AND c.where_ = f.cause AND c.kind IN ('uplink_silent', 'uplink_no_data')
)

SELECT * FROM ranked
UNION ALL BY NAME
SELECT                         -- those of a project come last
    kind, cluster, where_,
    (SELECT count(*) FROM ranked) + row_number() OVER (ORDER BY severity DESC, kind, number DESC, cluster, where_) AS rank,
    hour_utc, severity, what, number, unit, sentence, so_what, look_further, CAST(NULL AS VARCHAR) AS cause
FROM metrics.own_findings
