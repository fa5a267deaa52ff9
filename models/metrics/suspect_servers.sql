/* ---
about: Servers that use other rails than all other servers of their traffic group. At least two others must agree. Servers of suspect_links are neither listed nor compared.
grain: [cluster, server, hour_utc, kind]
columns:
  cluster: VARCHAR the cluster's folder
  server: VARCHAR GPU-n
  hour_utc: TIMESTAMP the hour
  kind: VARCHAR rails_differ
  group_id: INTEGER [1] the server's group in traffic_groups
  rails: VARCHAR rails that it used, as 1, 2, 4; NULL where it used none
  differing_rails: BIGINT [1] rails on which the server differs
  evidence: VARCHAR rails on which the server differs, and number of servers that it differs from
time: hour_utc
dimensions: [cluster, server, kind]
measures:
  group_id: none
  differing_rails: none
checks:
  - kind in ('rails_differ')
  - references(cluster, hour_utc, server) -> metrics.traffic_groups(cluster, hour_utc, server)
sources: docs/metrics/suspects.md
--- */
WITH moved AS (                -- bytes over rails with counters; only owners that are a single server
    SELECT
        g.cluster,
        g.hour_utc,
        g.group_id,
        g.server,
        {{ rail('o.switch') }} AS rail,
        sum(h.in_bytes + h.out_bytes) AS bytes
    FROM metrics.traffic_groups AS g
    JOIN topology.hour_owners AS o USING (cluster, server, hour_utc)  -- whole
    JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)  -- check of server_hour, whole
    ANTI JOIN metrics.suspect_links AS s USING (cluster, server)  -- filter
    WHERE NOT contains(g.server, '/') AND NOT starts_with(g.server, 'unlisted:')
    GROUP BY ALL
),

used AS (
    SELECT
        *,
        {{ uses_rail('bytes', 'of_server') }} AS is_used
    FROM moved
    WINDOW of_server AS (PARTITION BY cluster, server, hour_utc)
),

compared AS (
    SELECT
        a.cluster,
        a.hour_utc,
        a.group_id,
        a.server,
        a.rail,
        a.is_used,
        count(*) AS others,
        count(*) FILTER (WHERE o.is_used) AS users
    FROM used AS a
    JOIN used AS o  -- filter, count
        ON
            o.cluster = a.cluster AND o.hour_utc = a.hour_utc AND o.group_id = a.group_id
            AND o.rail = a.rail AND o.server <> a.server
    GROUP BY a.cluster, a.hour_utc, a.group_id, a.server, a.rail, a.is_used
),

odd AS (                       -- rails that all others use or none uses, unlike the server
    SELECT
        cluster,
        server,
        hour_utc,
        group_id,
        is_used,
        others,
        count(*) AS rails,
        min(rail) AS first_rail,
        if(rails = 1, 'rail ', 'rails ') || string_agg(rail, ', ' ORDER BY rail) || if(rails = 1, ' is', ' are') AS which
    FROM compared
    WHERE others >= 2 AND users = CASE WHEN is_used THEN 0 ELSE others END
    GROUP BY cluster, server, hour_utc, group_id, is_used, others
),

told AS (
    SELECT
        cluster,
        server,
        hour_utc,
        group_id,
        sum(rails) AS differing_rails,
        string_agg(
            which || if(is_used, ' used by none of ' || others || ' others', ' used by all ' || others || ' others, not by it'),
            '; ' ORDER BY first_rail
        ) AS evidence
    FROM odd
    GROUP BY ALL
)

SELECT
    t.cluster,
    t.server,
    t.hour_utc,
    'rails_differ' AS kind,
    t.group_id,
    string_agg(u.rail, ', ' ORDER BY u.rail) FILTER (WHERE u.is_used) AS rails,
    t.differing_rails,
    t.evidence
FROM told AS t
JOIN used AS u USING (cluster, server, hour_utc)  -- check of traffic_groups, grain, whole
GROUP BY t.cluster, t.server, t.hour_utc, t.group_id, t.differing_rails, t.evidence
