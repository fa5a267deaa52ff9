/* ---
about: How well each switch was observed, in the latest hour of its cluster.
--- */
SELECT
    switch,
    polls,
    median_poll_ms,
    opening_gap_seconds,
    round(100 * gap_bytes_share, 2) AS gap_bytes_percent,
    missing_port_polls,
    wraps,
    seconds_over_line_rate,
    hour_utc,
    cluster,
    row_number() OVER (ORDER BY gap_bytes_share DESC NULLS LAST, cluster, switch) AS place
FROM metrics.sampling_quality
QUALIFY hour_utc = max(hour_utc) OVER (PARTITION BY cluster)
ORDER BY cluster, regexp_extract(switch, '^(.*?)[0-9]*$', 1), length(switch), switch
