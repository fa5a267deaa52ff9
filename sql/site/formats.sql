/* ---
about: Files of each raw format, by cluster and status.
--- */
WITH rejected AS (
    SELECT file AS release_path, count(*) AS rejected_lines
    FROM raw.rejected_rows
    GROUP BY file
)

SELECT
    f.format,
    f.cluster,
    f.status,
    count(*) AS files,
    sum(f.bytes)::BIGINT AS bytes,
    count(DISTINCT f.hour_utc) AS hours,
    coalesce(sum(r.rejected_lines), 0)::BIGINT AS rejected_lines,
    min(f.release_path) AS first_file
FROM raw.files AS f
LEFT JOIN rejected AS r USING (release_path)
GROUP BY ALL
ORDER BY ALL
