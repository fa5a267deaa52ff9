/* ---
about: Our values of published quantities, one row per quantity; published_claims compares the claims with them. Includes the sum of jobs, the smallest and the largest value over both Acme clusters and over all five clusters.
grain: [quantity]
columns:
  quantity: VARCHAR name of the quantity, from general to specific, as seren/gpu/duration_up_to_64/job_percent
  value: DOUBLE our value, in the unit that the name ends with; days since 1970 for a day
measures:
  value: none
checks:
  - not null(value)
sources: docs/metrics/claims.md
--- */
WITH own AS (
    SELECT * FROM metrics.job_quantities
    UNION ALL
    SELECT * FROM metrics.job_share_quantities
    UNION ALL
    SELECT * FROM metrics.utilization_quantities
),

parts AS (
    SELECT
        split_part(quantity, '/', 1) AS cluster,
        regexp_replace(quantity, '^[^/]*/', '', 'g') AS rest,
        value
    FROM own
),

acme AS (
    SELECT
        rest,
        sum(value::DECIMAL(38, 3)) FILTER (WHERE ends_with(rest, 'jobs'))::DOUBLE AS total,
        min(value) AS smallest,
        max(value) AS largest
    FROM parts
    WHERE cluster IN ('seren', 'kalos')
    GROUP BY rest
    HAVING count(*) = 2
),

five AS (
    SELECT rest, max(value) AS largest
    FROM parts
    WHERE cluster IN ('seren', 'kalos', 'philly', 'helios', 'pai')
    GROUP BY rest
    HAVING count(*) = 5
)

SELECT * FROM own
UNION ALL
SELECT concat('acme/', rest) AS quantity, total AS value
FROM acme
WHERE rest IN ('jobs', 'gpu/jobs', 'cpu/jobs')
UNION ALL
SELECT concat('acme/smallest/', rest) AS quantity, smallest AS value
FROM acme
UNION ALL
SELECT concat('acme/largest/', rest) AS quantity, largest AS value
FROM acme
UNION ALL
SELECT concat('all/largest/', rest) AS quantity, largest AS value
FROM five
