/* ---
about: Bytes from leaf to leaf in an hour with the bounds that counters prove, and the share of the bytes that they prove within 10 %.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH cells AS (
    SELECT
        src,
        dst,
        bytes_low,
        bytes_estimate,
        bytes_high,
        evidence,
        round(100 * bytes_estimate / max(nullif(bytes_estimate, 0)) OVER (), 1) AS of_largest_percent,
        round(100 * (bytes_high - bytes_low) / nullif(bytes_estimate, 0), 1) AS width_percent,
        coalesce(bytes_low >= 0.9 * bytes_estimate AND bytes_high <= 1.1 * bytes_estimate, false) AS is_known
    FROM metrics.leaf_matrix
    WHERE cluster = $cluster AND hour_utc = $hour
),
told AS (
    SELECT
        format(
            '{:.0f} % of the bytes stay under their leaf',
            100 * sum(bytes_estimate) FILTER (WHERE dst = src) / nullif(sum(bytes_estimate) FILTER (WHERE src <> 'outside'), 0)
        ) AS title,
        concat(
            format(
                'Counters prove {:.1f} % of the bytes that leaves sent within 10 %. ',
                100 * coalesce(sum(bytes_estimate) FILTER (WHERE is_known AND src <> 'outside'), 0)
                / nullif(sum(bytes_estimate) FILTER (WHERE src <> 'outside'), 0)
            ),
            'Rows send, columns receive. A number is the width of the bounds in percent of the estimate: cells above 20 are likely, not measured. ',
            'From 1,000 % on there is none. ',
            'outside is every leaf that is not loaded.'
        ) AS conclusion
    FROM cells
)
SELECT cells.* EXCLUDE (is_known), told.*
FROM cells
CROSS JOIN told
ORDER BY 'outside' = src, starts_with(src, 'ST-'), length(src), src, 'outside' = dst, starts_with(dst, 'ST-'), length(dst), dst
