/* ---
about: Bytes in and out of each leaf in an hour. A switch stores no data, so both must agree.
params:
  cluster: VARCHAR the cluster
  hour: TIMESTAMP the hour
--- */
WITH shown AS (
    SELECT
        switch,
        CASE WHEN starts_with(switch, 'ST-') THEN 'storage leaf' ELSE 'leaf' END AS kind,
        in_bytes,
        out_bytes,
        round(1e6 * in_out_difference, 2) AS in_over_out_ppm,
        round(1e6 * abs(in_out_difference), 2) AS apart_ppm,
        row_number() OVER (ORDER BY starts_with(switch, 'ST-'), abs(in_out_difference) DESC, switch) AS place
    FROM metrics.leaf_hour
    WHERE cluster = $cluster AND hour_utc = $hour AND in_out_difference IS NOT NULL
),
told AS (
    SELECT
        first(format('Bytes in and out of each {} agree within {:g} ppm ({})', kind, apart_ppm, switch) ORDER BY place) AS title,
        concat(
            format('Bytes into the switches ({}) compared with bytes out of them, over the hour. ', count(*)),
            'A switch stores nothing, so the difference tests its counters (ppm: parts per million).',
            CASE WHEN bool_or(kind = 'leaf') THEN first(
                format(' Storage leaves move fewer bytes and differ by up to {:g} ppm ({}).', apart_ppm, switch) ORDER BY place
            ) FILTER (WHERE kind = 'storage leaf') END
        ) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY starts_with(switch, 'ST-'), length(switch), switch
