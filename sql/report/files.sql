/* ---
about: Files by format, hour and status.
--- */
WITH shown AS (
    SELECT
        coalesce(format, 'other') AS format,
        cluster,
        hour_utc,
        status,
        count(*) AS files,
        sum(bytes)::BIGINT AS bytes,
        max(reason) AS reason
    FROM raw.files
    GROUP BY ALL
),
counted AS (
    SELECT
        coalesce(sum(files) FILTER (WHERE status IN ('read', 'partial')), 0)::BIGINT AS read_files,
        coalesce(sum(bytes) FILTER (WHERE status IN ('read', 'partial')), 0)::BIGINT AS read_bytes,
        count(DISTINCT cluster) FILTER (WHERE status IN ('read', 'partial')) AS clusters,
        (sum(files) FILTER (WHERE status NOT IN ('read', 'partial')))::BIGINT AS other_files
    FROM shown
),
told AS (
    SELECT
        format(
            '{:,} files read, of {} cluster{}, {:.1f} MB', read_files, clusters, CASE clusters WHEN 1 THEN '' ELSE 's' END, read_bytes / 1e6
        ) AS title,
        coalesce(format('Files skipped or ignored: {:,}, with the reason in the table.', other_files), '') AS conclusion
    FROM counted
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY format, cluster, hour_utc, status
