/* ---
about: What the stored rows of each port file add up to, before any bytes are spread over time.
partition: hour_utc
grain: [file_key]
columns:
  file_key: BIGINT [1] the port and hour, see staging.port_files
  hour_utc: TIMESTAMP the hour
  polls: BIGINT [1] stored rows
  in_bytes: BIGINT [B] bytes that entered, wraps corrected, resets counting as 0
  out_bytes: BIGINT [B] bytes that left, likewise
  in_packets: BIGINT [1] packets that entered
  out_packets: BIGINT [1] packets that left
  zero_rows: BIGINT [1] rows with no bytes either way
  wraps: BIGINT [1] rows in which a 32-bit counter wrapped
  resets: BIGINT [1] rows with a negative delta that is no wrap
checks:
  - polls > 0
  - zero_rows + wraps + resets <= polls
sources: docs/metrics/rates.md
--- */
WITH sums AS (
    SELECT
        file_key,
        count(*) AS polls,
        sum(greatest(in_bytes_raw, 0)) AS in_bytes,
        sum(greatest(out_bytes_raw, 0)) AS out_bytes,
        coalesce(sum(in_bytes_raw + 4294967296) FILTER (WHERE in_bytes_raw < 0), 0) AS in_wrapped,
        coalesce(sum(out_bytes_raw + 4294967296) FILTER (WHERE out_bytes_raw < 0), 0) AS out_wrapped,
        sum(in_packets) AS in_packets,
        sum(out_packets) AS out_packets,
        count(*) FILTER (WHERE in_bytes_raw = 0 AND out_bytes_raw = 0) AS zero_rows,
        count(*) FILTER (WHERE in_bytes_raw < 0 OR out_bytes_raw < 0) AS negatives
    FROM staging.port_readings
    GROUP BY file_key
)

SELECT
    p.file_key,
    p.hour_utc,
    s.polls,
    s.in_bytes + CASE WHEN p.is_management THEN s.in_wrapped ELSE 0 END AS in_bytes,
    s.out_bytes + CASE WHEN p.is_management THEN s.out_wrapped ELSE 0 END AS out_bytes,
    s.in_packets,
    s.out_packets,
    s.zero_rows,
    CASE WHEN p.is_management THEN s.negatives ELSE 0 END AS wraps,
    CASE WHEN p.is_management THEN 0 ELSE s.negatives END AS resets
FROM sums AS s
JOIN staging.port_files AS p ON p.file_key = s.file_key
