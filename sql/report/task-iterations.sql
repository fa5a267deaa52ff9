/* ---
about: 'Iteration times of each training task, as a cumulative distribution.'
--- */
WITH shown AS (
    SELECT
        t.task,
        count(*) AS iterations,
        round(quantile_cont(t.seconds, 0.5), 3) AS median_seconds,
        round(quantile_cont(t.seconds, 0.99), 3) AS p99_seconds,
        round(max(t.seconds), 3) AS longest_seconds,
        list_transform(quantile_disc(t.seconds, list_transform(range(101), LAMBDA p: p / 100)), LAMBDA s: round(s, 3)) AS seconds_by_percent,
        t.cluster,
        row_number() OVER (ORDER BY count(*) DESC, t.cluster, t.task) AS place,
        row_number() OVER (ORDER BY max(t.seconds) DESC, t.cluster, t.task) AS longest_place
    FROM metrics.task_iterations AS t
    WHERE t.seconds > 0
    GROUP BY t.cluster, t.task
),
told AS (
    SELECT
        first(format('The longest iteration is one of {}: {:g} s, its median {:g} s', task, longest_seconds, median_seconds)
            ORDER BY longest_place) AS title,
        format(
            '{:,} iterations of the tasks with logs ({}), a step at each percent. The twelve tasks with most iterations are drawn.',
            sum(iterations)::BIGINT, count(*)
        ) AS conclusion
    FROM shown
)
SELECT shown.*, told.*
FROM shown
CROSS JOIN told
ORDER BY place
