/* ---
about: The lines that `warehouse build` ends with, what to look at first.
question: What is loaded, and how well was it observed?
--- */
WITH facts AS (
    SELECT
        (SELECT count(*) FROM metrics.suspect_links) AS suspects,
        -- only access ports are missing from polls for that; a row that a damaged file lost is none of them
        (SELECT coalesce(sum(h.missing_polls), 0)::BIGINT
            FROM metrics.port_hour AS h
            JOIN staging.port_files AS p USING (cluster, switch, port, hour_utc)
            ANTI JOIN staging.rejected_rows AS r ON r.file = p.file
            WHERE p.port_class = 'access') AS missing,
        (SELECT sum((gap_bytes_share * in_bytes)::DECIMAL(38, 3))::DOUBLE / nullif(sum(in_bytes), 0)
            FROM metrics.sampling_quality JOIN metrics.leaf_hour USING (cluster, switch, hour_utc)) AS gap_share,
        (SELECT sum(h.in_bytes + h.out_bytes)::DOUBLE
            FROM topology.hour_owners AS o
            JOIN metrics.port_hour AS h USING (cluster, switch, port, hour_utc)
            WHERE o.evidence <> 'workbook' AND o.hour_utc = (SELECT max(hour_utc) FROM metrics.port_hour)) AS inferred,
        (SELECT count(*) FROM staging.rejected_rows) AS rejected,
        (SELECT max(checkable_note) FROM metrics.spine_hour) AS note
)
SELECT line
FROM (
    SELECT 1 AS place, concat_ws(' · ',
        CASE WHEN suspects > 0 THEN suspects || ' suspect link' || CASE WHEN suspects > 1 THEN 's' ELSE '' END END,
        CASE WHEN missing > 0 THEN format('{:,} polls above line rate merged', missing) END,
        CASE WHEN gap_share > 0 THEN format('{:.1f} % of bytes in the opening gap', 100 * gap_share) END) AS line
    FROM facts
    UNION ALL
    SELECT 2, rejected || CASE WHEN rejected > 1 THEN ' lines' ELSE ' line' END || ' rejected: warehouse sql "FROM staging.rejected_rows"'
    FROM facts
    WHERE rejected > 0
    UNION ALL
    SELECT 3, format('{:.1f} TB pass ports that no sheet names: warehouse sql -q ports-without-owner', inferred / 1e12)
    FROM facts
    WHERE inferred >= 5e10
    UNION ALL
    SELECT 4, 'sums per spine are ' || note FROM facts WHERE note IS NOT NULL
    UNION ALL
    SELECT 5, 'Look first:  warehouse sql -q suspect-links' FROM facts WHERE suspects > 0
)
WHERE line <> ''
ORDER BY place
