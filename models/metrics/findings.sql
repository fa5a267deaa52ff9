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
-- Each kind has a query of its name: place, hour, number, cause, and the facts that its sentence names.
WITH one_way AS (              -- uplinks without data in one direction, with the bytes of the other
    SELECT
        s.cluster, s.switch, s.port,
        s.switch || ' ' || {{ short_port('s.port') }} AS where_,
        regexp_extract(s.kind, '[a-z]+$') AS direction,
        starts_with(s.kind, 'uplink_silent') AS is_silent,
        s.evidence,
        greatest(sum(h.in_bytes), sum(h.out_bytes)) AS bytes
    FROM metrics.suspect_links AS s
    JOIN metrics.port_hour AS h USING (cluster, switch, port)
    WHERE starts_with(s.kind, 'uplink_')
    GROUP BY ALL
),

uplink_silent AS (             -- number: bytes of the working direction
    SELECT cluster, where_, bytes AS number, direction, direction = 'out' AS is_out, evidence
    FROM one_way
    WHERE is_silent
),

uplink_no_data AS (            -- number: bytes of the working direction
    SELECT cluster, where_, bytes AS number, direction, direction = 'out' AS is_out, evidence
    FROM one_way
    WHERE NOT is_silent
),

lost_ways AS (                 -- spines that a leaf's uplink sends nothing to
    SELECT o.cluster, u.hour_utc, u.spine, min_by(o.where_, (length(o.where_), o.where_)) AS cause, list(o.switch ORDER BY o.switch) AS leaves
    FROM one_way AS o
    JOIN topology.hour_uplinks AS u ON u.cluster = o.cluster AND u.leaf = o.switch AND u.leaf_port = o.port
    WHERE o.direction = 'out'
    GROUP BY ALL
),

from_spines AS (               -- bytes of a leaf from each spine, per uplink
    SELECT h.cluster, h.hour_utc, h.switch, u.spine, sum(h.in_bytes) // count(*) AS bytes
    FROM metrics.port_hour AS h
    JOIN topology.hour_uplinks AS u
        ON u.cluster = h.cluster AND u.leaf = h.switch AND u.leaf_port = h.port AND u.hour_utc = h.hour_utc
    SEMI JOIN lost_ways AS l ON l.cluster = h.cluster AND l.hour_utc = h.hour_utc
    GROUP BY ALL
),

less AS (                      -- share by which a leaf gets less from a spine than from the others
    SELECT cluster, hour_utc, switch, spine, 1 - bytes / nullif(others, 0) AS share
    FROM (
        SELECT *, (sum(bytes) OVER of_leaf - bytes) / nullif(count(*) OVER of_leaf - 1, 0) AS others
        FROM from_spines
        WINDOW of_leaf AS (PARTITION BY cluster, hour_utc, switch)
    ) AS compared
    WHERE others >= {{ idle_bytes() }}
),

less_from_spine AS (           -- number: the largest such share
    SELECT
        s.cluster, s.spine AS where_, s.hour_utc,
        max(s.share) AS number,
        l.cause,
        count(*) AS leaves,
        {{ names_text('list(s.switch ORDER BY ' ~ natural('s.switch') ~ ')') }} AS leaves_text,
        100 * max(s.share) AS most_percent,
        CASE WHEN round(100 * min(s.share)) < round(100 * max(s.share)) THEN 100 * min(s.share) END AS least_percent
    FROM less AS s
    JOIN lost_ways AS l USING (cluster, hour_utc, spine)
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'less_from_spine') AS k
    WHERE s.share >= k.threshold AND NOT list_contains(l.leaves, s.switch)
    GROUP BY s.cluster, s.spine, s.hour_utc, l.cause
    QUALIFY row_number() OVER (PARTITION BY s.cluster, s.spine ORDER BY number DESC, s.hour_utc) = 1
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
    JOIN topology.sheet_servers AS h USING (cluster, server)
    LEFT JOIN (SELECT cluster, switch, port, sum(in_bytes + out_bytes) AS bytes FROM metrics.port_hour GROUP BY ALL) AS p
        ON p.cluster = s.cluster AND p.switch = s.switch AND p.port = s.port
    WHERE s.kind = 'server_in_other_group'
    GROUP BY ALL
),

servers_exchanged AS (         -- number: rows of the workbook of both
    SELECT
        a.cluster,
        a.server || ' and ' || b.server AS where_,
        a.cables + b.cables AS number,
        a.server AS first_server, b.server AS second_server, a.home_port AS first_port, b.home_port AS second_port,
        a.home_group AS first_group, b.home_group AS second_group,
        a.ports + b.ports AS ports,
        coalesce(a.bytes, 0) + b.bytes AS bytes
    FROM misplaced AS a
    JOIN misplaced AS b
        ON
            b.cluster = a.cluster AND b.server_number > a.server_number AND b.leaf_group = a.home_group AND b.home_group = a.leaf_group
            AND b.port_number = a.home_port AND b.home_port = a.port_number
),

cabled AS (
    SELECT
        s.cluster, s.server, s.kind,
        s.candidate_port IS NOT NULL AS has_candidate,
        count(*) AS cables,
        string_agg(s.switch || ' ' || {{ short_port('s.port') }}, ', ' ORDER BY length(s.switch), s.switch, s.port) AS ports,
        string_agg(s.switch || ' ' || {{ short_port('s.candidate_port') }}, ', ' ORDER BY length(s.switch), s.switch, s.port) AS candidates,
        min(s.evidence) AS evidence
    FROM metrics.suspect_links AS s
    ANTI JOIN servers_exchanged AS x ON x.cluster = s.cluster AND s.server IN (x.first_server, x.second_server)
    WHERE s.server IS NOT NULL
    GROUP BY ALL
),

server_cabled_elsewhere AS (   -- number: rows of the workbook that contradict the server's number
    SELECT
        cluster, server AS where_,
        sum(cables) AS number,
        max(evidence) FILTER (WHERE kind = 'server_in_other_group') AS evidence,
        max(ports) FILTER (WHERE kind = 'server_in_other_group') AS group_ports,
        max(ports) FILTER (WHERE kind <> 'server_in_other_group' AND has_candidate) AS idle_ports,
        max(candidates) FILTER (WHERE kind <> 'server_in_other_group' AND has_candidate) AS candidates,
        max(ports) FILTER (WHERE kind <> 'server_in_other_group' AND NOT has_candidate) AS lone_ports
    FROM cabled
    GROUP BY cluster, server
),

rails_differ AS (              -- number: rails that differ from all others of the group, in the worst loaded hour
    SELECT
        cluster, server AS where_, hour_utc,
        len(string_split(evidence, '; ')) AS number,
        rails,
        CASE WHEN rails IS NULL THEN server END AS idle_server,
        evidence
    FROM metrics.suspect_servers
    QUALIFY row_number() OVER (PARTITION BY cluster, server ORDER BY number DESC, hour_utc) = 1
),

one_way_of_leaf AS (           -- one-way uplinks per leaf and direction, ordered by port number
    SELECT
        cluster, switch, direction,
        string_agg({{ short_port('port') }}, ', ' ORDER BY length(port), port) AS ports,
        min_by(where_, (length(port), port)) AS cause,
        count(*) AS links
    FROM one_way
    GROUP BY ALL
),

uplink_bytes AS (              -- one row per uplink of a GPU leaf, hour and direction, and if its spine has a one-way uplink from that leaf
    SELECT
        h.cluster, h.switch, h.port, h.hour_utc, d.direction,
        CAST(CASE d.direction WHEN 'in' THEN h.in_bytes ELSE h.out_bytes END AS DECIMAL(38, 0)) AS bytes,
        bool_or(x.port IS NOT NULL) OVER (PARTITION BY h.cluster, h.switch, h.hour_utc, d.direction, s.spine) AS is_beside
    FROM metrics.port_hour AS h
    CROSS JOIN (VALUES ('in'), ('out')) AS d (direction)
    LEFT JOIN topology.hour_uplinks AS s
        ON s.cluster = h.cluster AND s.leaf = h.switch AND s.leaf_port = h.port AND s.hour_utc = h.hour_utc
    LEFT JOIN one_way AS x
        ON x.cluster = h.cluster AND x.switch = h.switch AND x.port = h.port AND x.direction = d.direction
    WHERE h.port_class = 'uplink'
),

others AS (                    -- balance of the uplinks to spines without a one-way uplink, from integer sums as in uplink_balance
    SELECT
        cluster, switch, hour_utc, direction,
        arg_max(port, (bytes, port)) AS fullest,
        sqrt(
            CAST(
                count(*) FILTER (WHERE NOT is_beside) * sum(bytes * bytes) FILTER (WHERE NOT is_beside)
                - sum(bytes) FILTER (WHERE NOT is_beside) * sum(bytes) FILTER (WHERE NOT is_beside) AS DOUBLE
            )
        ) / nullif(CAST(sum(bytes) FILTER (WHERE NOT is_beside) AS DOUBLE), 0) AS cov
    FROM uplink_bytes
    GROUP BY ALL
),

uneven_leaf AS (               -- number: standard deviation over mean, in the most uneven loaded hour
    SELECT
        b.cluster,
        b.switch || ' ' || b.direction AS where_,
        b.hour_utc, b.cov AS number,
        CASE WHEN o.cov < k.threshold THEN d.cause END AS cause,
        b.switch AS leaf, b.direction, b.direction = 'out' AS is_out, b.uplinks, b.cov,
        CASE WHEN o.cov < k.threshold THEN b.uplinks - d.links END AS alive,
        CASE WHEN o.cov < k.threshold THEN d.ports END AS reason_ports,
        d.links AS reason_links, o.cov AS others_cov,
        CASE WHEN coalesce(o.cov >= k.threshold, true) OR d.links IS NULL THEN {{ short_port('o.fullest') }} END AS fullest,
        b.max_over_mean,
        CASE WHEN coalesce(o.cov >= k.threshold, true) THEN d.ports END AS part_ports,
        d.links AS part_links
    FROM metrics.uplink_balance AS b
    JOIN others AS o USING (cluster, switch, hour_utc, direction)
    LEFT JOIN one_way_of_leaf AS d USING (cluster, switch, direction)
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'uneven_leaf') AS k
    QUALIFY row_number() OVER (PARTITION BY b.cluster, b.switch, b.direction ORDER BY b.cov DESC NULLS LAST, b.hour_utc) = 1
),

spine_out_of_line AS (         -- number: relative difference of its bytes from the mean of the spines, where all leaves are loaded
    SELECT
        cluster, spine AS where_, hour_utc,
        abs(over_mean - 1) AS number,
        over_mean > 1 AS is_more,
        to_leaf_bytes, from_leaf_bytes
    FROM metrics.spine_hour
    WHERE checkable
    QUALIFY row_number() OVER (PARTITION BY cluster, spine ORDER BY abs(over_mean - 1) DESC NULLS LAST, hour_utc) = 1
),

full_nics AS (                 -- NICs with as many seconds near their line rate as the threshold has
    SELECT
        h.cluster, h.hour_utc, o.server,
        count(*) AS nics,
        sum(h.full_seconds) AS full_seconds,
        sum(h.missing_polls) AS missing_polls
    FROM metrics.port_hour AS h
    JOIN topology.hour_owners AS o USING (cluster, switch, port, hour_utc)
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'nics_at_line_rate') AS k
    WHERE h.full_seconds >= k.threshold
    GROUP BY h.cluster, h.hour_utc, o.server
),

nics_at_line_rate AS (         -- number: port-seconds above 90 % of the line rate, in the hour with the most
    SELECT
        f.cluster,
        {{ count_text('count(*)', 'server') }} AS where_,
        f.hour_utc,
        sum(f.full_seconds) AS number,
        count(*) AS servers,
        {{ names_text('list(f.server ORDER BY f.full_seconds DESC, ' ~ natural('f.server') ~ ')') }} AS servers_text,
        sum(f.nics) AS nics,
        nullif(sum(f.missing_polls), 0) AS missing_polls,
        q.missing_polls AS all_missing_polls
    FROM full_nics AS f
    JOIN (SELECT cluster, hour_utc, sum(missing_port_polls) AS missing_polls FROM metrics.sampling_quality GROUP BY ALL) AS q
        USING (cluster, hour_utc)
    GROUP BY f.cluster, f.hour_utc, q.missing_polls
    QUALIFY row_number() OVER (PARTITION BY f.cluster ORDER BY number DESC, f.hour_utc) = 1
),

minutes_above AS (             -- minutes less even than the limit of a fair hash
    SELECT
        m.cluster, m.switch, m.direction, m.hour_utc,
        count(*) AS minutes,
        count(*) FILTER (WHERE m.cov > m.hash_null_p99) AS above,
        max(m.cov / m.hash_null_p99) AS largest,
        arg_max(m.minute_utc, (m.cov / m.hash_null_p99, m.minute_utc)) AS minute_utc
    FROM metrics.uplink_balance_minute AS m
    ANTI JOIN one_way_of_leaf AS d USING (cluster, switch, direction)
    WHERE m.cov IS NOT NULL AND m.hash_null_p99 > 0
    GROUP BY ALL
),

uneven_minutes AS (            -- number: minutes above, more or further than chance has them, in the hour with the most
    SELECT
        cluster,
        switch || ' ' || direction AS where_,
        hour_utc, above AS number, switch AS leaf, direction = 'out' AS is_out, minutes,
        minutes / 100 AS by_chance,
        minute_utc, largest
    FROM minutes_above
    WHERE largest >= 1.5 OR above >= 0.1 * minutes
    QUALIFY row_number() OVER (PARTITION BY cluster, switch, direction ORDER BY above DESC, largest DESC, hour_utc) = 1
),

peer_differs AS (              -- number: the uplink
    SELECT cluster, switch || ' ' || {{ short_port('port') }} AS where_, 1 AS number, evidence
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
        f.cluster,
        f.switch || ' ' || {{ short_port('f.port') }} AS where_,
        f.hour_utc, f.utilization AS number,
        CASE WHEN l.loaded < l.known THEN l.loaded END AS loaded,
        l.known,
        CASE WHEN l.loaded < l.known THEN NULL ELSE '' END AS all_links,
        replace(f.port_class, '_', ' ') AS port_class,
        f.is_uplink,
        CASE WHEN NOT f.is_uplink THEN u.switch || ' ' || {{ short_port('u.port') }} END AS uplink,
        u.utilization AS uplink_utilization
    FROM fullest AS f
    LEFT JOIN fullest_uplink AS u USING (cluster)
    LEFT JOIN leaves AS l USING (cluster)
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
    JOIN metrics.leaf_hour AS l USING (cluster, switch, hour_utc)
    LEFT JOIN (SELECT cluster, max(checkable_note) AS note FROM metrics.spine_hour GROUP BY cluster) AS s USING (cluster)
    GROUP BY q.cluster
),

server_leaves AS (             -- leaves that a server is plugged into, one NIC each; a pair such as GPU-121/122 counts as one server
    SELECT
        o.cluster, o.server,
        count(DISTINCT o.switch) AS known,
        count(DISTINCT o.switch) FILTER (WHERE s.has_counters) AS loaded
    FROM topology.port_owners AS o
    LEFT JOIN topology.switches AS s USING (cluster, switch)
    GROUP BY ALL
),

sides AS (                     -- bytes of a server in each direction, beside the other
    SELECT
        h.cluster, h.hour_utc, h.server, d.direction,
        CASE d.direction WHEN 'receive' THEN h.rx_bytes ELSE h.tx_bytes END AS bytes,
        CASE d.direction WHEN 'receive' THEN h.tx_bytes ELSE h.rx_bytes END AS other_bytes
    FROM metrics.server_hour AS h
    JOIN server_leaves AS l ON l.cluster = h.cluster AND l.server = h.server AND l.loaded = l.known
    CROSS JOIN (VALUES ('receive'), ('send')) AS d (direction)
),

one_way_servers AS (           -- number: bytes of the servers that move a twentieth of them or less the other way
    SELECT
        s.cluster, s.direction AS where_, s.hour_utc,
        sum(s.bytes) AS number,
        count(*) AS servers,
        list(s.server || ' (' || {{ bytes_text('s.bytes') }} || ')' ORDER BY s.bytes DESC, s.server) AS names,
        CASE s.direction WHEN 'receive' THEN {{ names_text('names') }} END AS receivers,
        CASE s.direction WHEN 'send' THEN {{ names_text('names') }} END AS senders,
        sum(s.other_bytes) AS other_bytes
    FROM sides AS s
    CROSS JOIN (SELECT threshold FROM reference.finding_kinds WHERE kind = 'one_way_servers') AS k
    WHERE s.bytes >= k.threshold AND 20 * s.other_bytes < s.bytes
    GROUP BY s.cluster, s.direction, s.hour_utc
    QUALIFY row_number() OVER (PARTITION BY s.cluster, s.direction ORDER BY number DESC, s.hour_utc) = 1
),

traffic AS (                   -- bytes of all servers per hour
    SELECT cluster, hour_utc, CAST(sum(rx_bytes + tx_bytes) AS BIGINT) AS bytes
    FROM metrics.server_hour
    GROUP BY ALL
),

idle_servers AS (              -- number: share of the servers that moved next to nothing, in the hour with the largest
    SELECT
        h.cluster,
        count(*) FILTER (WHERE h.rx_bytes + h.tx_bytes < {{ idle_bytes() }}) AS idle,
        {{ count_text('idle', 'server') }} AS where_,
        h.hour_utc,
        idle / count(*) AS number,
        count(*) AS servers,
        {{ loaded_nics_text('l.loaded', 'l.known') }} AS loaded_nics
    FROM metrics.server_hour AS h
    LEFT JOIN server_leaves AS l USING (cluster, server)
    GROUP BY h.cluster, h.hour_utc
    QUALIFY row_number() OVER (PARTITION BY h.cluster ORDER BY number DESC, h.hour_utc) = 1
),

jobs AS (
    SELECT
        j.cluster, j.hour_utc, j.group_id, j.servers, j.bytes,
        j.bytes / nullif(t.bytes, 0) AS share,
        {{ period_text('j.period_seconds', 'j.period_error_seconds', 'j.alias_seconds') }} AS period,
        arg_min(g.server, (length(g.server), g.server)) AS first_server,
        {{ loaded_nics_text('l.loaded', 'l.known') }} AS loaded_nics
    FROM metrics.job_periods AS j
    JOIN traffic AS t USING (cluster, hour_utc)
    JOIN metrics.traffic_groups AS g ON g.cluster = j.cluster AND g.hour_utc = j.hour_utc AND g.group_id = j.group_id
    LEFT JOIN server_leaves AS l ON l.cluster = g.cluster AND l.server = g.server
    GROUP BY ALL
),

job_trades_most AS (           -- number: bytes received and sent by the servers of the job
    SELECT
        cluster,
        'group of ' || first_server AS where_,
        hour_utc, bytes AS number, servers, first_server, share, loaded_nics,
        loaded_nics IS NULL AS has_all_nics,
        coalesce(period, 'not resolved') AS period
    FROM jobs
    WHERE bytes > 0
    QUALIFY row_number() OVER (PARTITION BY cluster ORDER BY bytes DESC, hour_utc, group_id) = 1
),

job_pauses AS (                -- number: seconds of an hour in which a large job pauses, in its worst hour
    SELECT
        j.cluster,
        'group of ' || j.first_server AS where_,
        j.hour_utc,
        sum(p.seconds) AS number,
        j.first_server, j.share,
        list(strftime(p.start_utc, '%H:%M:%S') || ' to ' || strftime(p.start_utc + to_seconds(p.seconds), '%H:%M:%S') ORDER BY p.start_utc) AS stretches,
        {{ names_text('stretches') }} AS times
    FROM metrics.job_pauses AS p
    JOIN jobs AS j USING (cluster, hour_utc, group_id)
    WHERE j.share > 0.1
    GROUP BY j.cluster, j.hour_utc, j.first_server, j.share
    QUALIFY row_number() OVER (PARTITION BY j.cluster, j.first_server ORDER BY number DESC, j.hour_utc) = 1
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
    SELECT c.*, CAST(c.facts ->> '$.hour_utc' AS TIMESTAMP) AS hour_utc, c.facts ->> '$.cause' AS cause, k.position
    FROM candidates AS c
    JOIN reference.finding_kinds AS k USING (kind)
    WHERE c.number >= k.threshold
),

ranked AS (
    SELECT
        f.kind,
        f.cluster,
        f.where_,
        row_number() OVER (
            ORDER BY
                coalesce(c.position, f.position), coalesce(c.number, f.number) DESC, f.cluster, coalesce(c.where_, f.where_),
                c.where_ IS NOT NULL, f.position, f.number DESC, f.where_
        ) AS rank,
        f.hour_utc,
        k.severity,
        k.what,
        f.number,
        k.unit,
        {{ sentence('k.sentence', 'f.facts') }} AS sentence,
        k.so_what,
        {{ sentence('k.look_further', 'f.facts') }} AS look_further,
        f.cause
    FROM found AS f
    JOIN reference.finding_kinds AS k USING (kind)
    LEFT JOIN found AS c ON c.cluster = f.cluster AND c.where_ = f.cause AND c.kind IN ('uplink_silent', 'uplink_no_data')
)

SELECT * FROM ranked
UNION ALL
SELECT                         -- those of a project come last
    kind,
    cluster,
    where_,
    (SELECT count(*) FROM ranked) + row_number() OVER (ORDER BY severity DESC, kind, number DESC, cluster, where_) AS rank,
    hour_utc,
    severity,
    what,
    number,
    unit,
    sentence,
    so_what,
    look_further,
    CAST(NULL AS VARCHAR) AS cause
FROM metrics.own_findings
