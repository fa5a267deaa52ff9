/* ---
about: Our values of what was published, a quantity a row; published_claims holds the claims against them.
materialize: view
grain: [quantity]
columns:
  quantity: VARCHAR its name, from the whole to the part, as seren/gpu/duration_up_to_64/job_percent
  value: DOUBLE our value, in the unit that the name ends with; days since 1970 for a day
measures:
  value: none
sources: docs/metrics/claims.md
--- */
SELECT
    quantity,
    value
FROM metrics.job_quantities
UNION ALL
SELECT
    quantity,
    value
FROM metrics.utilization_quantities
