/* ---
about: 'Dimension of loaded hours, in UTC.'
grain: [hour_utc]
columns:
  hour_utc: TIMESTAMP start of the hour; the key
  label: VARCHAR display name, as 2024-05-23 16:00 UTC
  sort_key: VARCHAR sorts labels in order, as 2024-05-23T16
  date_utc: DATE the day
  hour_of_day: INTEGER [1] 0 to 23
  weekday: VARCHAR Monday to Sunday
  has_counters: BOOLEAN true if port counter files of the hour are loaded
checks:
  - referenced(hour_utc) by metrics.leaf_matrix(hour_utc)
  - referenced(hour_utc) by metrics.rail_seconds(hour_utc)
  - referenced(hour_utc) by metrics.findings(hour_utc)
  - referenced(hour_utc) by metrics.flow_locality_hour(hour_utc)
  - referenced(hour_utc) by metrics.flow_pairs(hour_utc)
  - referenced(hour_utc) by metrics.job_pauses(hour_utc)
  - referenced(hour_utc) by metrics.job_periods(hour_utc)
  - referenced(hour_utc) by metrics.leaf_hour(hour_utc)
  - referenced(hour_utc) by metrics.nic_hour(hour_utc)
  - referenced(hour_utc) by metrics.port_hour(hour_utc)
  - referenced(hour_utc) by metrics.port_loss_hour(hour_utc)
  - referenced(hour_utc) by metrics.port_minute(hour_utc)
  - referenced(hour_utc) by metrics.sampling_quality(hour_utc)
  - referenced(hour_utc) by metrics.server_hour(hour_utc)
  - referenced(hour_utc) by metrics.server_minute(hour_utc)
  - referenced(hour_utc) by metrics.spine_hour(hour_utc)
  - referenced(hour_utc) by metrics.suspect_servers(hour_utc)
  - referenced(hour_utc) by metrics.task_periods(hour_utc)
  - referenced(hour_utc) by metrics.traffic_groups(hour_utc)
  - referenced(hour_utc) by metrics.traffic_jobs(hour_utc)
  - referenced(hour_utc) by metrics.traffic_matrix(hour_utc)
  - referenced(hour_utc) by metrics.traffic_matrix_minute(hour_utc)
  - referenced(hour_utc) by metrics.traffic_periods(hour_utc)
  - referenced(hour_utc) by metrics.uplink_balance(hour_utc)
  - referenced(hour_utc) by metrics.uplink_balance_minute(hour_utc)
sources: docs/star.md
--- */
WITH named AS (
    SELECT hour_utc, true AS has_counters FROM staging.port_files
    UNION ALL
    SELECT hour_utc, false AS has_counters FROM metrics.nic_hour
    UNION ALL
    SELECT hour_utc, false AS has_counters FROM staging.hour_link
    UNION ALL
    SELECT hour_utc, false AS has_counters FROM staging.hour_port
)

SELECT
    hour_utc,
    strftime(hour_utc, '%Y-%m-%d %H:%M UTC') AS label,
    strftime(hour_utc, '%Y-%m-%dT%H') AS sort_key,
    CAST(hour_utc AS DATE) AS date_utc,
    CAST(date_part('hour', hour_utc) AS INTEGER) AS hour_of_day,
    dayname(hour_utc) AS weekday,
    bool_or(has_counters) AS has_counters
FROM named
WHERE hour_utc IS NOT NULL
GROUP BY hour_utc
