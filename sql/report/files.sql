/* ---
about: Files by format, hour and status.
--- */
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
ORDER BY ALL
