/* ---
about: 'Observation quality of each switch in an hour: polls, opening gap, missing polls, wraps.'
question: What is loaded, and how well was it observed?
aliases: [sampling-quality]
params:
  hour: TIMESTAMP = null the hour (UTC); default the latest
answer: [switch, polls, median_poll_ms, gap_seconds, gap_share, missing, over_rate]
--- */
-- gap_share: of the bytes that came in, those in the first rows after the opening gap
SELECT switch, polls, median_poll_ms, opening_gap_seconds AS gap_seconds, round(gap_bytes_share, 4) AS gap_share,
    missing_port_polls AS missing, wraps, seconds_over_line_rate AS over_rate, zero_rows, hour_utc, cluster
FROM metrics.sampling_quality
WHERE hour_utc = coalesce($hour::TIMESTAMP, (SELECT max(hour_utc) FROM metrics.sampling_quality))
ORDER BY cluster, regexp_extract(switch, '^(.*?)[0-9]*$', 1), length(switch), switch
