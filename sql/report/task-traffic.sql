/* ---
about: 'Bytes that the NICs of each training task sent in observed iterations, beside the bytes expected in them.'
--- */
WITH shown AS (
    SELECT
        task,
        count(*) AS nics,
        count(tx_bytes) AS nics_seen,
        sum(tx_bytes)::BIGINT AS tx_bytes,
        (sum(expected_nominal_bytes) FILTER (WHERE tx_bytes IS NOT NULL))::BIGINT AS expected_nominal_bytes,
        (sum(expected_implemented_bytes) FILTER (WHERE tx_bytes IS NOT NULL))::BIGINT AS expected_implemented_bytes,
        max(observed_iterations) AS observed_iterations,
        max(tasks_on_nic) FILTER (WHERE tx_bytes IS NOT NULL) AS tasks_on_nic,
        string_agg(DISTINCT server, ' ' ORDER BY server) AS servers,
        cluster,
        row_number() OVER (ORDER BY sum(tx_bytes) DESC NULLS LAST, cluster, task) AS place
    FROM metrics.task_traffic
    GROUP BY cluster, task
),
sized AS (
    SELECT
        *,
        ['B', 'kB', 'MB', 'GB', 'TB', 'PB'][CAST(floor(log10(greatest(tx_bytes, 1)) / 3) AS INTEGER) + 1] AS unit,
        1000 ** floor(log10(greatest(tx_bytes, 1)) / 3) AS unit_bytes
    FROM shown
),
told AS (
    SELECT
        coalesce(
            first(concat(
                task, format(' sent {:.3g} {}', tx_bytes / unit_bytes, unit),
                coalesce(
                    format('; expected, as implemented: {:.3g} {}', expected_implemented_bytes / unit_bytes, unit),
                    format('; expected, nominal: {:.3g} {}', expected_nominal_bytes / unit_bytes, unit)
                )
            ) ORDER BY place) FILTER (WHERE tx_bytes IS NOT NULL),
            'No task ran in a loaded hour: traffic of tasks is not measured'
        ) AS title,
        concat(
            format('{} of {} tasks ran on observed NICs in loaded hours', count(tx_bytes), count(*)),
            CASE
                WHEN count(tx_bytes) = 0 THEN '. There is nothing to draw.'
                ELSE concat(
                    nullif(format('; {} had no iteration in one', count(*) FILTER (WHERE tx_bytes IS NULL AND coalesce(observed_iterations, 0) = 0)), '; 0 had no iteration in one'),
                    '. Expected bytes keep the copies of the model equal: nominal, by the usual formula (line), and as the framework implements it (gray).',
                    format(
                        ' * NICs of {} had up to {} tasks at a time: their bytes are those of all tasks together.',
                        string_agg(task, ', ' ORDER BY place) FILTER (WHERE tasks_on_nic > 1), max(tasks_on_nic)
                    )
                )
            END
        ) AS conclusion
    FROM sized
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY place
