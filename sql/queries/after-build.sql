/* ---
about: Findings in the last lines of `warehouse build`, most important first, and files that are not read.
question: What is loaded, and how well was it observed?
--- */
WITH kinds AS (                     -- one line per kind, at most seven; consequences stand under their cause in the sentences
    SELECT k.position, k.kind, k.severity, k.what, k.unit, count(*) AS findings,
        list(f.where_ ORDER BY f.rank) AS places, max(f.number) AS number
    FROM metrics.findings AS f
    JOIN reference.finding_kinds AS k USING (kind)
    WHERE f.cause IS NULL
    GROUP BY k.position, k.kind, k.severity, k.what, k.unit
),
facts AS (
    SELECT
        (SELECT count(*) FROM metrics.findings) AS findings,
        (SELECT count(*) FROM metrics.findings WHERE severity = 'warning') AS warnings,
        EXISTS (FROM meta.checks WHERE model = 'metrics.findings' AND status = 'passed')
            AND (EXISTS (FROM metrics.port_hour) OR EXISTS (FROM staging.cluster_topology)) AS looked,
        (SELECT sum(h.in_bytes + h.out_bytes)::DOUBLE
            FROM topology.hour_owners AS o
            JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)
            WHERE o.evidence <> 'workbook' AND o.hour_utc = (SELECT max(hour_utc) FROM metrics.port_hour)) AS inferred,
        (SELECT count(*) FROM staging.rejected_rows) AS rejected,
        (SELECT count(*) FROM raw.files WHERE status = 'skipped') AS skipped
)
SELECT line
FROM (
    SELECT 0 AS place,
        'No finding of any kind (reference.finding_kinds)' AS line
    FROM facts
    WHERE looked AND findings = 0
    UNION ALL
    SELECT position, concat(severity, ' · ', what, CASE WHEN findings > 1 THEN ' (' || findings || ')' ELSE '' END, ': ',
        array_to_string(places[:3], ', '), CASE WHEN findings > 3 THEN ' ..' ELSE '' END,
        CASE WHEN findings > 1 OR starts_with(kind, 'uplink_') THEN ''
            WHEN unit = '1' THEN format(', {:.1f} %', 100 * number)
            WHEN unit = 'B' AND number >= 1e15 THEN format(', {:.2f} PB', number / 1e15)
            WHEN unit = 'B' THEN format(', {:.1f} TB', number / 1e12)
            ELSE format(', {:.0f} ', number) || CASE number WHEN 1 THEN rtrim(unit, 's') ELSE unit END END)
    FROM (FROM kinds ORDER BY position LIMIT 7)
    UNION ALL
    SELECT 20, rejected || CASE WHEN rejected > 1 THEN ' lines' ELSE ' line' END || ' rejected: warehouse sql "FROM staging.rejected_rows"'
    FROM facts
    WHERE rejected > 0
    UNION ALL
    SELECT 20, concat('not read: ', release_path, ': ', reason)
    FROM (FROM raw.files WHERE status = 'skipped' ORDER BY release_path LIMIT 3)
    UNION ALL
    SELECT 21, concat('not read: ', skipped - 3, ' more: warehouse doctor')
    FROM facts
    WHERE skipped > 3
    UNION ALL
    SELECT 22, format('{:.1f} TB pass ports that no sheet names: warehouse sql -q ports-without-owner', inferred / 1e12)
    FROM facts
    WHERE inferred >= 5e10
    UNION ALL
    SELECT 30, CASE WHEN findings = 0 THEN 'Next:  warehouse ls  (the tables, by question)'
            ELSE concat('Next:  warehouse findings  (', warnings, CASE warnings WHEN 1 THEN ' warning, ' ELSE ' warnings, ' END,
                findings - warnings, CASE findings - warnings WHEN 1 THEN ' note' ELSE ' notes' END, ', in sentences)') END
    FROM facts
)
WHERE line <> ''
ORDER BY place, line
