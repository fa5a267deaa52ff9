/* ---
about: What was loaded, by format and hour, and what was set aside.
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
