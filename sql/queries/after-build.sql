/* ---
about: The lines that `warehouse build` ends with: what to look at first.
--- */
WITH facts AS (
    SELECT
        (SELECT count(*) FROM metrics.suspect_links) AS suspects,
        (SELECT coalesce(sum(missing_port_polls), 0) FROM metrics.sampling_quality) AS missing,
        (SELECT sum(gap_bytes_share * in_bytes) / nullif(sum(in_bytes), 0)
         FROM metrics.sampling_quality JOIN metrics.leaf_hour USING (cluster, switch, hour_utc)) AS gap_share,
        (SELECT count(*) FROM staging.rejected_rows) AS rejected,
        (SELECT max(checkable_note) FROM metrics.spine_hour) AS note
)
SELECT line
FROM (
    SELECT 1 AS place, concat_ws(' · ',
        CASE WHEN suspects > 0 THEN suspects || ' suspect links' END,
        CASE WHEN missing > 0 THEN format('{:,} polls above line rate merged', missing::BIGINT) END,
        CASE WHEN gap_share > 0 THEN format('{:.1f} % of bytes in the opening gap', 100 * gap_share) END,
        CASE WHEN rejected > 0 THEN rejected || ' lines rejected' END) AS line
    FROM facts
    UNION ALL
    SELECT 2, 'sums per spine are ' || note FROM facts WHERE note IS NOT NULL
    UNION ALL
    SELECT 3, 'Look first:  warehouse sql -q suspect-links' FROM facts WHERE suspects > 0
)
WHERE line <> ''
ORDER BY place
