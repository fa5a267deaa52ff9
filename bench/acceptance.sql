/* Rules of docs/metrics for bench.acceptance: tables from what bench/acceptance_files.py read, independent of the models.
   Thresholds are those of docs/metrics/findings.md. */
CREATE MACRO is_same(a, b) AS a IS NOT DISTINCT FROM b;
CREATE MACRO is_near(a, b) AS is_same(a, b) OR coalesce(abs(a - b) <= greatest(1e-9 * abs(a), 1e-12), false);
CREATE MACRO busy() AS 1000000000;  -- bytes of an hour below which a link or a server is idle
CREATE MACRO cage(port) AS CAST(regexp_extract(port, '/(\d+)(:\d+)?$', 1) AS INTEGER);  -- p of 1/0/p and 1/0/p:h
CREATE MACRO number(switch) AS CAST(regexp_extract(switch, '\d+$') AS INTEGER);
CREATE MACRO leaves(switch) AS concat(regexp_extract(switch, '^\D+'), (number(switch) - 1) // 4);  -- four share servers
CREATE MACRO class(switch, port) AS CASE
    WHEN port LIKE 'M-GigabitEthernet%' THEN 'management'
    WHEN switch LIKE 'ST-%' THEN if(cage(port) BETWEEN 55 AND 64, 'storage_uplink', 'storage_access')
    WHEN port LIKE 'TwoHundredGigE%' THEN 'access'
    ELSE if(cage(port) BETWEEN 33 AND 62, 'uplink', 'spare') END;
CREATE MACRO short(switch, port) AS concat(switch, ' ', regexp_extract(port, 'GigE(.*)$', 1));
CREATE MACRO counted(n, word) AS format('{:,} {}', n, word) || if(n = 1, '', 's');

CREATE TABLE hours AS
WITH rated AS (
    SELECT *, class(switch, port) AS class, CASE port[1] WHEN 'M' THEN 1 WHEN 'T' THEN 200 ELSE 400 END * 1000000000::BIGINT AS rate
    FROM loads
), filled AS (
    SELECT cluster, switch, port, hour_utc, count(*) AS full_seconds
    FROM rated JOIN seconds AS s USING (cluster, switch, port, hour_utc)
    WHERE greatest(s.in_bytes, s.out_bytes) > rate * 9 // 80
    GROUP BY ALL
)
SELECT rated.*, coalesce(full_seconds, 0) AS full_seconds, in_bytes + out_bytes AS moved
FROM rated LEFT JOIN filled USING (cluster, switch, port, hour_utc);

-- owners of access ports ---------------------------------------------------------------------------
CREATE TABLE bases AS  -- the commonest server number minus slot of each group of leaves
SELECT cluster, leaves, base
FROM (
    SELECT cluster, leaves(switch) AS leaves, server - slot AS base, count(*) AS n
    FROM plugs WHERE slot IS NOT NULL GROUP BY ALL
)
QUALIFY row_number() OVER (PARTITION BY cluster, leaves ORDER BY n DESC, base) = 1;

CREATE TABLE owned AS
WITH lone AS (FROM bases QUALIFY count(*) OVER (PARTITION BY cluster, base) = 1),
placed AS (  -- the two servers of the cage, and the server that the sheet has at the other half
    SELECT h.*, p.server, b.base + 2 * cage(port) - 1 AS one, b.base + 2 * cage(port) AS two, o.server AS beside
    FROM hours AS h
    LEFT JOIN plugs AS p USING (cluster, switch, port)
    LEFT JOIN lone AS b ON b.cluster = h.cluster AND b.leaves = leaves(h.switch) AND contains(h.port, ':')
    LEFT JOIN plugs AS o ON o.cluster = h.cluster AND o.switch = h.switch
        AND o.port = left(h.port, -1) || if(h.port LIKE '%1', '2', '1')
    WHERE class = 'access'
), known AS (
    SELECT *,
        coalesce((cluster, one) IN (SELECT (cluster, server) FROM plugs), false) AS one_plugged,
        coalesce((cluster, two) IN (SELECT (cluster, server) FROM plugs), false) AS two_plugged,
        coalesce((cluster, one) IN (SELECT (cluster, server) FROM nic_sheet), false) AS one_listed,
        coalesce((cluster, two) IN (SELECT (cluster, server) FROM nic_sheet), false) AS two_listed
    FROM placed
), named AS (SELECT cluster, 'GPU-' || server AS server FROM plugs UNION SELECT cluster, 'GPU-' || server FROM nic_sheet)
SELECT k.* EXCLUDE (server), coalesce(
    'GPU-' || k.server,
    r.server,
    CASE
        WHEN one IS NULL THEN NULL
        WHEN NOT one_plugged AND NOT two_plugged AND (one_listed OR two_listed) THEN format('GPU-{}/{}', one, two)
        WHEN NOT one_plugged AND two_plugged AND one_listed AND beside = two THEN 'GPU-' || one
        WHEN one_plugged AND NOT two_plugged AND two_listed AND beside = one THEN 'GPU-' || two
    END,
    if(moved > 0, format('unlisted:{}:{}', k.switch, replace(k.port, 'TwoHundredGigE', '')), NULL)
) AS server
FROM known AS k
LEFT JOIN (FROM reviewed SEMI JOIN named USING (cluster, server)) AS r USING (cluster, switch, port);
DELETE FROM owned WHERE server IS NULL;

CREATE TABLE server_hour AS
WITH ports AS (SELECT *, 10 * moved >= max(moved) OVER (PARTITION BY cluster, server, hour_utc) AS used FROM owned)
SELECT cluster, server, hour_utc, count(*) AS nics,
    if(sum(moved) >= busy(), count(*) FILTER (used), 0) AS rails_used, sum(out_bytes) AS rx_bytes,
    sum(in_bytes) AS tx_bytes
FROM ports GROUP BY ALL;

-- uplinks ------------------------------------------------------------------------------------------
CREATE TABLE ways AS
SELECT *, way FROM (SELECT *, unnest(['in', 'out']) AS way FROM hours WHERE class LIKE '%uplink');

CREATE TABLE uplink_balance AS
WITH sums AS (
    SELECT cluster, switch, hour_utc, way, count(*) AS n, sum(b) AS t, sum(b::HUGEINT * b) AS q, max(b) AS most
    FROM (SELECT *, if(way = 'in', in_bytes, out_bytes) AS b FROM ways) GROUP BY ALL
)
SELECT cluster, switch, hour_utc, way AS direction, n AS uplinks, t / n AS mean_bytes,
    CASE WHEN t >= busy() * n THEN sqrt(n * q - t * t) / t END AS cov,
    CASE WHEN t >= busy() * n THEN n * most / t END AS max_over_mean,
    CASE WHEN t >= busy() * n THEN (t * t)::DOUBLE / (n * q) END AS jain_index
FROM sums;

CREATE TABLE minutes AS
SELECT cluster, switch, port, hour_utc, second // 60 AS minute, class(switch, port) AS class, unnest(['in', 'out']) AS way,
    unnest([sum(in_bytes), sum(out_bytes)]) AS b, sum(covered_ms) AS covered,
    CASE WHEN bool_or(quality = 'gap') THEN 2 WHEN bool_or(quality = 'coarse') THEN 1 ELSE 0 END AS worst
FROM seconds
WHERE class(switch, port) SIMILAR TO '.*(access|uplink)'
GROUP BY cluster, switch, port, hour_utc, minute;

CREATE TABLE balance_minute AS
WITH links AS (SELECT cluster, switch, hour_utc, way, count(*) AS n FROM ways GROUP BY ALL),
sums AS (
    SELECT cluster, switch, hour_utc, minute, way, sum(b) AS t, sum(b::HUGEINT * b) AS q, max(b) AS most,
        max(worst) AS worst, max(covered) AS covered
    FROM minutes WHERE class LIKE '%uplink' GROUP BY ALL
), directed AS (
    SELECT cluster, hour_utc, unnest([source, dest]) AS switch, unnest(['out', 'in']) AS way, first, last, packets FROM flows
), active AS (
    SELECT s.cluster, s.switch, s.hour_utc, minute, s.way,
        sum(packets) FILTER (now BETWEEN first AND last) AS now_sum,
        sum(packets::HUGEINT * packets) FILTER (now BETWEEN first AND last) AS now_squares,
        sum(packets) AS hour_sum, sum(packets::HUGEINT * packets) AS hour_squares
    FROM (SELECT *, epoch(hour_utc)::BIGINT // 60 + minute AS now FROM sums) AS s
    JOIN directed USING (cluster, switch, hour_utc, way) GROUP BY ALL
), access AS (  -- what servers send goes out
    SELECT cluster, switch, hour_utc, minute, if(way = 'in', 'out', 'in') AS way, sum(b) AS t, sum(b::HUGEINT * b) AS q
    FROM minutes WHERE class LIKE '%access' GROUP BY ALL
), assumed AS (
    SELECT s.*, n, CASE
        WHEN now_sum > 0 THEN now_sum * now_sum // now_squares
        WHEN hour_sum > 0 THEN hour_sum * hour_sum // hour_squares
        WHEN access.t > 0 THEN coalesce(qps_per_nic, 2) * access.t * access.t // access.q END AS spread
    FROM sums AS s
    JOIN links USING (cluster, switch, hour_utc, way)
    LEFT JOIN active USING (cluster, switch, hour_utc, minute, way)
    LEFT JOIN access USING (cluster, switch, hour_utc, minute, way)
    LEFT JOIN sizes USING (cluster)
)
SELECT cluster, switch, hour_utc, hour_utc + to_minutes(minute) AS minute_utc, way AS direction, t AS total_bytes,
    CASE WHEN judged THEN sqrt(n * q - t * t) / t END AS cov,
    CASE WHEN judged THEN n * most / t END AS max_over_mean,
    CASE WHEN judged THEN (t * t)::DOUBLE / (n * q) END AS jain_index,
    CASE WHEN worst < 2 THEN sqrt(chi_square_p99 / flows) END AS hash_null_p99,
    flows AS flows_assumed, ['fine', 'coarse', 'gap'][worst + 1] AS quality, covered AS covered_ms
FROM (
    SELECT *, worst < 2 AND t * 60 >= busy() * n AS judged, if(spread < 1, 1, spread) AS flows FROM assumed
) AS a
ASOF LEFT JOIN (SELECT uplinks, flows AS at_least, chi_square_p99 FROM hash_null) AS h
    ON a.n = h.uplinks AND a.flows >= h.at_least;

CREATE TABLE stated AS  -- other ends on which all rows of an hour's link table agree
SELECT cluster, switch, port, hour_utc, any_value(spine) AS spine, any_value(spine_port) AS spine_port
FROM (SELECT DISTINCT * FROM ends) GROUP BY ALL HAVING count(*) = 1;
CREATE MACRO spine_of(switch, port) AS
    concat('spine-', if(switch LIKE 'ST-%', cage(port) - 54, (cage(port) - 33) // 3 + 1));
CREATE MACRO spine_port_of(switch, port) AS if(
    switch LIKE 'ST-%', NULL, concat('FourHundredGigE1/0/', 3 * (number(switch) - 1) + (cage(port) - 33) % 3 + 1));
CREATE TABLE links AS
SELECT h.*, coalesce(s.spine, spine_of(switch, port)) AS spine
FROM hours AS h LEFT JOIN stated AS s USING (cluster, switch, port, hour_utc)
WHERE s.spine IS NOT NULL OR class LIKE '%uplink';

CREATE TABLE spine_hour AS
WITH sums AS (
    SELECT cluster, spine, hour_utc, sum(in_bytes) AS arrived, sum(out_bytes) AS sent, count(DISTINCT switch) AS leaves,
        count(*) AS seen
    FROM links GROUP BY ALL
), judged AS (
    SELECT s.*, coalesce(s.leaves = z.leaves + storage_leaves AND (
        seen = 3 * z.leaves + storage_leaves OR sum(seen) OVER (PARTITION BY cluster, hour_utc)
            = spines * (3 * z.leaves + storage_leaves)), false) AS checkable
    FROM sums AS s LEFT JOIN sizes AS z USING (cluster)
)
SELECT cluster, spine, hour_utc, arrived AS to_leaf_bytes, sent AS from_leaf_bytes,
    CASE WHEN checkable AND sent > 0 THEN (arrived - sent) / sent END AS in_out_difference,
    CASE WHEN checkable THEN (arrived + sent) * count(*) FILTER (checkable) OVER w
        / nullif(sum(arrived + sent) FILTER (checkable) OVER w, 0) END AS over_mean,
    leaves AS leaves_seen, seen AS uplinks_seen, checkable
FROM judged WINDOW w AS (PARTITION BY cluster, hour_utc);

-- suspect links ------------------------------------------------------------------------------------
CREATE TABLE loaded AS SELECT cluster, switch, count(DISTINCT hour_utc) AS hours FROM hours GROUP BY ALL;
CREATE TABLE suspects AS
WITH one_way AS (
    SELECT cluster, switch, port, count(*) AS n,
        bool_and(in_bytes >= busy() AND out_bytes * 1000000 < in_bytes) AS not_out,
        bool_and(out_bytes >= busy() AND in_bytes * 1000000 < out_bytes) AS not_in,
        sum(in_packets) AS in_packets, sum(out_packets) AS out_packets
    FROM hours WHERE class LIKE '%uplink' GROUP BY ALL
), homes AS (
    SELECT p.*, leaves(switch) AS leaves, hours,
        (SELECT base FROM bases AS b WHERE b.cluster = p.cluster AND b.leaves = leaves(p.switch)) AS base
    FROM plugs AS p LEFT JOIN loaded USING (cluster, switch)
), idle AS (  -- plugged ports that are no access ports and moved nothing
    SELECT DISTINCT cluster, switch, port FROM hours WHERE class <> 'access'
    GROUP BY ALL HAVING sum(moved) = 0
), candidates AS (
    SELECT i.cluster, i.switch, i.port, any_value(h.port) AS candidate
    FROM idle AS i
    JOIN homes AS p USING (cluster, switch, port)
    JOIN (SELECT cluster, switch, port FROM hours WHERE class = 'access' GROUP BY ALL HAVING sum(moved) >= busy()) AS h
        ON h.cluster = i.cluster AND h.switch = i.switch AND cage(h.port) = (p.server - p.base + 1) // 2
    ANTI JOIN plugs AS q ON q.cluster = h.cluster AND q.switch = h.switch AND q.port = h.port
    GROUP BY ALL HAVING count(*) = 1
)
SELECT cluster, switch, port, concat(if(if(not_out, out_packets, in_packets) > 0, 'uplink_no_data', 'uplink_silent'),
    if(not_out, '_out', '_in')) AS kind, NULL AS server, NULL AS nic, NULL AS candidate_port, n AS hours
FROM one_way JOIN loaded USING (cluster, switch) WHERE n = hours AND (not_out OR not_in)
UNION ALL
SELECT p.cluster, p.switch, p.port, 'server_in_other_group', 'GPU-' || server, nic, NULL, coalesce(hours, 0)
FROM homes AS p
WHERE p.leaves <> (SELECT arg_max(b.leaves, b.base) FROM bases AS b WHERE b.cluster = p.cluster AND b.base < p.server)
    AND (SELECT count(DISTINCT base) FROM bases AS b WHERE b.cluster = p.cluster)
        = (SELECT count(DISTINCT q.leaves) FROM homes AS q WHERE q.cluster = p.cluster)
UNION ALL
SELECT cluster, switch, port, 'access_on_idle_400g', 'GPU-' || server, nic, candidate, hours
FROM homes JOIN idle USING (cluster, switch, port) LEFT JOIN candidates USING (cluster, switch, port)
UNION ALL
SELECT s.cluster, s.switch, s.port, 'peer_differs', NULL, NULL, NULL,
    coalesce((SELECT hours FROM loaded AS l WHERE l.cluster = s.cluster AND l.switch = s.switch), 0)
FROM stated AS s LEFT JOIN hours AS h USING (cluster, switch, port, hour_utc)
GROUP BY s.cluster, s.switch, s.port
HAVING count(DISTINCT (spine, spine_port)) > 1 OR NOT bool_and(coalesce(class NOT LIKE '%uplink', true) OR (
    spine = spine_of(s.switch, s.port) AND spine_port = coalesce(spine_port_of(s.switch, s.port), spine_port)));

-- refreshes of switches ----------------------------------------------------------------------------
CREATE TABLE sampling AS
WITH at_once AS (
    SELECT cluster, switch, hour_utc, time, count(*) FILTER (moved AND class(switch, port) LIKE '%access') AS n,
        sum(arrived) AS arrived
    FROM polls GROUP BY ALL
), pairs AS (
    SELECT *, lag(time) OVER (PARTITION BY cluster, switch, hour_utc ORDER BY time) AS before FROM at_once
)
SELECT *, pi() * (before + time) / 1000 AS angle, coalesce(time - before < 1000 AND n > 0, false) AS shows FROM pairs;
CREATE MACRO ms(angle, n) AS (round(500 * atan2(sum(n * sin(angle)), sum(n * cos(angle))) / pi())::BIGINT + 1000) % 1000;
CREATE TABLE phases AS
WITH parts AS (
    SELECT cluster, switch, hour_utc, ms(angle, n) AS part FROM sampling WHERE shows
    GROUP BY cluster, switch, hour_utc, time // 600000
), whole AS (SELECT cluster, switch, hour_utc, ms(angle, n) AS phase, sum(n) AS n FROM sampling WHERE shows GROUP BY ALL)
SELECT cluster, switch, hour_utc, any_value(phase) AS refresh_phase_ms,
    max(500 - abs(500 - abs(part - phase))) AS refresh_spread_ms, any_value(n) AS refresh_readings
FROM (SELECT DISTINCT cluster, switch, hour_utc FROM sampling)
LEFT JOIN whole USING (cluster, switch, hour_utc) LEFT JOIN parts USING (cluster, switch, hour_utc)
GROUP BY ALL;

-- traffic groups, as published ---------------------------------------------------------------------
CREATE TABLE members AS
SELECT g.group_id, g.period_seconds, o.*, (number(switch) - 1) % 4 + 1 AS rail
FROM groups AS g JOIN owned AS o USING (cluster, hour_utc, server);
CREATE MACRO used(moved, total, most) AS total >= busy() AND 10 * moved >= most;
CREATE TABLE group_rails AS
WITH rails AS (SELECT cluster, hour_utc, group_id, rail, sum(moved) AS moved FROM members GROUP BY ALL)
SELECT cluster, hour_utc, group_id, count(*) FILTER (used(moved, total, most)) AS rails, any_value(total) AS bytes
FROM (SELECT *, sum(moved) OVER w AS total, max(moved) OVER w AS most FROM rails
    WINDOW w AS (PARTITION BY cluster, hour_utc, group_id)) GROUP BY ALL;
CREATE TABLE suspect_servers AS
WITH rails AS (SELECT cluster, hour_utc, group_id, server, rail, sum(moved) AS moved FROM members GROUP BY ALL),
compared AS (
    SELECT *, used(moved, sum(moved) OVER w, max(moved) OVER w) AS used
    FROM rails ANTI JOIN suspects USING (cluster, server)
    WHERE server NOT LIKE '%/%' AND server NOT LIKE 'unlisted:%'
    WINDOW w AS (PARTITION BY cluster, hour_utc, group_id, server)
), odd AS (
    SELECT *, count(*) OVER w > 2 AND count(*) FILTER (used) OVER w = if(used, 1, count(*) OVER w - 1) AS differs
    FROM compared WINDOW w AS (PARTITION BY cluster, hour_utc, group_id, rail)
)
SELECT cluster, server, hour_utc, group_id, string_agg(rail, ', ' ORDER BY rail) FILTER (used) AS rails,
    count(*) FILTER (differs) AS differing_rails
FROM odd GROUP BY ALL HAVING differing_rails > 0;

CREATE TABLE pauses AS
WITH moved AS (
    SELECT m.cluster, m.hour_utc, group_id, period_seconds, second, sum(s.in_bytes + s.out_bytes) AS b,
        bool_or(quality = 'gap') AS gap
    FROM members AS m JOIN seconds AS s USING (cluster, switch, port, hour_utc)
    WHERE period_seconds IS NOT NULL GROUP BY ALL
), busy AS (  -- at a tenth of the mean rate
    SELECT *, 36000 * b >= sum(b) OVER (PARTITION BY cluster, hour_utc, group_id) AS busy FROM moved
), marks AS (
    SELECT *, lead(second) OVER (PARTITION BY cluster, hour_utc, group_id ORDER BY second) AS next
    FROM (SELECT *, min(second) FILTER (busy) OVER w AS low, max(second) FILTER (busy) OVER w AS high FROM busy
        WINDOW w AS (PARTITION BY cluster, hour_utc, group_id))
    WHERE (busy OR gap) AND second BETWEEN low AND high
)
SELECT a.cluster, a.hour_utc, a.group_id, a.hour_utc + to_seconds(a.second + 1) AS start_utc,
    a.next - a.second - 1 AS seconds, coalesce(sum(m.b), 0) AS bytes
FROM marks AS a
LEFT JOIN moved AS m ON m.cluster = a.cluster AND m.hour_utc = a.hour_utc AND m.group_id = a.group_id
    AND m.second > a.second AND m.second < a.next
WHERE a.next - a.second - 1 >= 5 AND a.next - a.second - 1 > a.period_seconds
GROUP BY ALL;

-- published figures --------------------------------------------------------------------------------
CREATE TABLE judged AS
WITH compared AS (
    SELECT c.*, q.value - published_value AS difference, c.relation = 'equal' AND EXISTS (
        FROM claims AS o WHERE o.computed = c.computed AND o.relation = 'equal'
            AND abs(o.published_value - c.published_value) > c.tolerance + o.tolerance + 1e-9) AS disputed
    FROM claims AS c LEFT JOIN quantities AS q ON q.quantity = c.computed
)
SELECT claim, difference, CASE
    WHEN difference IS NULL THEN 'no_data'
    WHEN CASE relation WHEN 'equal' THEN abs(difference) <= tolerance + 1e-9 WHEN 'at_most' THEN difference <= 1e-9
        WHEN 'at_least' THEN difference >= -1e-9 WHEN 'below' THEN difference < 0 ELSE difference > 0 END
        THEN 'reproduced'
    WHEN disputed THEN 'contradicted' ELSE 'differs' END AS verdict
FROM compared;

-- findings: number, and hour unless it holds for all hours -----------------------------------------
CREATE TABLE strays AS  -- servers in another group than their number's, where they stand and where they belong
SELECT s.cluster, number(s.server) AS server, count(*) AS cables, any_value(home) AS home,
    CASE WHEN count(DISTINCT (leaves(s.switch), cage(s.port))) = 1
        THEN any_value(concat(leaves(s.switch), '/', cage(s.port))) END AS place
FROM suspects AS s, LATERAL (
    SELECT arg_max(concat(b.leaves, '/', (number(s.server) - b.base + 1) // 2), b.base) AS home
    FROM bases AS b WHERE b.cluster = s.cluster AND b.base < number(s.server))
WHERE kind = 'server_in_other_group' GROUP BY ALL;
CREATE TABLE exchanged AS
SELECT a.cluster, a.server AS one, b.server AS two, a.cables + b.cables AS cables
FROM strays AS a JOIN strays AS b ON a.cluster = b.cluster AND a.server < b.server
WHERE a.place = b.home AND b.place = a.home;
CREATE TABLE servers AS
SELECT cluster, server, hour_utc, sum(moved) AS moved, sum(out_bytes) AS received, sum(in_bytes) AS sent,
    sum(full_seconds) FILTER (full_seconds >= 10) AS full_seconds
FROM owned GROUP BY ALL;
CREATE TABLE first_members AS
SELECT cluster, hour_utc, group_id, 'group of ' || arg_min(server, (length(server), server)) AS place FROM groups GROUP BY ALL;

CREATE TABLE candidates AS
SELECT regexp_extract(kind, '(.*)_', 1) AS kind, cluster, short(switch, port) AS where_, NULL::TIMESTAMP AS hour_utc,
    greatest(sum(in_bytes), sum(out_bytes))::DOUBLE AS number
FROM suspects AS s JOIN hours AS h USING (cluster, switch, port) WHERE kind LIKE 'uplink_%'
GROUP BY s.kind, cluster, switch, port
UNION ALL
SELECT 'less_from_spine', cluster, spine, hour_utc, 1 - mean * (n - 1) / (total - mean)
FROM (SELECT *, count(*) OVER w AS n, sum(mean) OVER w AS total FROM (
        SELECT cluster, hour_utc, switch, spine, sum(in_bytes) // count(*) AS mean FROM links GROUP BY ALL)
    WINDOW w AS (PARTITION BY cluster, hour_utc, switch)) AS m
JOIN (SELECT cluster, hour_utc, spine, list(DISTINCT switch) AS losers FROM links
    SEMI JOIN (FROM suspects WHERE kind LIKE 'uplink_%_out') USING (cluster, switch, port) GROUP BY ALL)
    USING (cluster, hour_utc, spine)
WHERE NOT list_contains(losers, switch) AND n > 1 AND total - mean >= busy() * (n - 1)
    AND 1 - mean * (n - 1) / (total - mean) >= 0.1
UNION ALL
SELECT 'servers_exchanged', cluster, format('GPU-{} and GPU-{}', one, two), NULL, cables FROM exchanged
UNION ALL
SELECT 'server_cabled_elsewhere', cluster, server, NULL, count(*) FROM suspects AS s
WHERE server IS NOT NULL AND NOT EXISTS (
    FROM exchanged AS e WHERE e.cluster = s.cluster AND number(s.server) IN (e.one, e.two))
GROUP BY ALL
UNION ALL
SELECT 'uneven_leaf', cluster, concat(switch, ' ', direction), hour_utc, cov FROM uplink_balance
WHERE cov >= 0.1 AND switch NOT LIKE 'ST-%'
UNION ALL
(SELECT DISTINCT ON (cluster) 'nics_at_line_rate', cluster, counted(count(*), 'server'), hour_utc, sum(full_seconds)
FROM servers WHERE full_seconds > 0 GROUP BY cluster, hour_utc ORDER BY cluster, sum(full_seconds) DESC, hour_utc)
UNION ALL
SELECT 'one_way_servers', cluster, way, hour_utc, sum(greatest(sent, received))
FROM (SELECT *, if(received > sent, 'receive', 'send') AS way FROM servers)
WHERE greatest(sent, received) >= 1000000000000 AND 20 * least(sent, received) < greatest(sent, received)
    AND (cluster, server) NOT IN (SELECT (cluster, 'GPU-' || server) FROM plugs ANTI JOIN hours USING (cluster, switch))
GROUP BY ALL
UNION ALL
(SELECT DISTINCT ON (cluster) 'idle_servers', cluster, counted(idle, 'server'), hour_utc, idle / n
FROM (SELECT cluster, hour_utc, count(*) AS n, count(*) FILTER (moved < busy()) AS idle FROM servers GROUP BY ALL)
WHERE idle >= 0.1 * n ORDER BY cluster, idle / n DESC, hour_utc)
UNION ALL
SELECT 'job_pauses', cluster, place, hour_utc, length
FROM (SELECT cluster, hour_utc, group_id, sum(seconds) AS length FROM pauses GROUP BY ALL)
JOIN group_rails USING (cluster, hour_utc, group_id)
JOIN (SELECT cluster, hour_utc, sum(moved) AS total FROM servers GROUP BY ALL) USING (cluster, hour_utc)
JOIN first_members USING (cluster, hour_utc, group_id) WHERE bytes / total > 0.1
UNION ALL
SELECT 'rails_differ', cluster, server, hour_utc, differing_rails FROM suspect_servers
UNION ALL
SELECT 'spine_out_of_line', cluster, spine, hour_utc, abs(over_mean - 1) FROM spine_hour WHERE abs(over_mean - 1) >= 0.1
UNION ALL
SELECT 'uneven_minutes', cluster, concat(switch, ' ', direction), hour_utc, count(*) FILTER (cov > hash_null_p99)
FROM balance_minute
ANTI JOIN (SELECT cluster, switch, regexp_extract(kind, '[a-z]+$') AS direction FROM suspects WHERE kind LIKE 'uplink_%')
    USING (cluster, switch, direction)
WHERE cov IS NOT NULL AND hash_null_p99 > 0 GROUP BY ALL
HAVING max(cov / hash_null_p99) >= 1.5
    OR count(*) FILTER (cov > hash_null_p99) > 0 AND count(*) FILTER (cov > hash_null_p99) >= 0.1 * count(*)
UNION ALL
SELECT 'peer_differs', cluster, short(switch, port), NULL, 1 FROM suspects WHERE kind = 'peer_differs'
UNION ALL
SELECT 'observation', cluster, format('{:,} switches', switches), NULL, in_gap / entered
FROM (SELECT cluster, sum(in_bytes) AS entered, count(DISTINCT switch) AS switches FROM hours GROUP BY ALL)
JOIN (SELECT cluster, sum(arrived) AS in_gap FROM (
        SELECT cluster, switch, hour_utc, arg_max(arrived, (time - before, -time)) AS arrived FROM sampling
        WHERE before < 300000 GROUP BY ALL) GROUP BY ALL) USING (cluster)
WHERE entered > 0 AND in_gap / entered >= 0.01
UNION ALL
SELECT 'claims_differ', 'all', 'published figures', NULL, count(*) FROM judged
WHERE verdict IN ('differs', 'contradicted') HAVING count(*) > 0
UNION ALL
(SELECT DISTINCT ON (cluster) 'fullest_link', cluster, short(switch, port), hour_utc,
    greatest(in_bytes, out_bytes) * 8 / 3600 / rate AS share
FROM hours WHERE class <> 'management' ORDER BY cluster, share DESC, hour_utc)
UNION ALL
(SELECT DISTINCT ON (cluster) 'job_trades_most', cluster, place, hour_utc, bytes
FROM group_rails JOIN first_members USING (cluster, hour_utc, group_id) ORDER BY cluster, bytes DESC, hour_utc);
CREATE TABLE findings AS
FROM candidates QUALIFY row_number() OVER (PARTITION BY kind, cluster, where_ ORDER BY number DESC, hour_utc) = 1;
