/* ---
about: Every stored poll of every port, with as few columns as possible. Read staging.port_counters for names, times and flags.
partition: [hour_utc, switch]
grain: [file_key, offset_ms]
presorted: true            # files are read in key order, and the rows of a file are in poll order
columns:
  file_key: BIGINT [1] the port and hour, see staging.port_files
  hour_utc: TIMESTAMP the hour
  switch: VARCHAR short name of the switch
  offset_ms: INTEGER [ms] time of the poll since the start of the hour
  in_bytes_raw: BIGINT [B] bytes that entered the switch since the port's previous row, as stored
  out_bytes_raw: BIGINT [B] bytes that left the switch since the port's previous row, as stored
  in_packets: BIGINT [1] packets that entered
  out_packets: BIGINT [1] packets that left
  published_in_ratio: DOUBLE [%] as published, 1.6 times too low on 400G ports
  published_out_ratio: DOUBLE [%] as published
  fits: BOOLEAN true if device, port and hour match the file, both clocks agree, counters are possible and ratios are present
checks:
  - fits                     # also fails where a counter is NULL
sources: docs/formats/port_counters.md
--- */
WITH keyed_files AS (          -- each file's path, with the values that each of its rows must have
    SELECT
        f.read_path,
        p.file_key,
        p.hour_utc,
        p.switch,
        p.device_name,
        p.port,
        -- a port at 400 Gbit/s needs over five hours for 1e15 B; a counter of 32 bits wraps by no more than 2^32
        CASE WHEN p.is_management THEN -{{ wrap() }} ELSE -999999999999999 END AS lowest,
        epoch_us(p.hour_utc) // 1000 AS hour_ms,
        strftime(p.hour_utc + INTERVAL '8 hours', '%Y/%m/%d ') AS local_date
    FROM staging.port_files AS p
    JOIN raw.files AS f ON f.release_path = p.file AND f.hour_utc = p.hour_utc
)

SELECT
    k.file_key,
    k.hour_utc,
    k.switch,
    CAST(r.SaveTimeUTC - k.hour_ms AS INTEGER) AS offset_ms,
    r.InOctets AS in_bytes_raw,
    r.OutOctets AS out_bytes_raw,
    r.InPkts AS in_packets,
    r.OutPkts AS out_packets,
    r.InRatio AS published_in_ratio,
    r.OutRatio AS published_out_ratio,
    r.DeviceName = k.device_name
    AND r.PortName = k.port
    AND r.SaveTimeUTC - k.hour_ms BETWEEN 0 AND 3599999
    AND r.InOctets BETWEEN k.lowest AND 999999999999999
    AND r.OutOctets BETWEEN k.lowest AND 999999999999999
    AND r.InPkts BETWEEN -999999999999999 AND 999999999999999
    AND r.OutPkts BETWEEN -999999999999999 AND 999999999999999
    AND r.InRatio IS NOT NULL
    AND r.OutRatio IS NOT NULL
    -- SaveTime is the same instant in UTC+8 (28,800,000 ms) with a Chinese weekday in the middle, so date and clock are compared apart
    AND starts_with(r.SaveTime, k.local_date)
    AND ends_with(r.SaveTime, strftime(epoch_ms(r.SaveTimeUTC + 28800000), ' %H:%M:%S.%g')) AS fits
FROM raw.port_counters AS r            -- LEFT: a row of a file without a key has no grain, and stops the build
LEFT JOIN keyed_files AS k ON r.filename = k.read_path
