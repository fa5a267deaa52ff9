/* ---
about: Time of a training step in ElasticFlow's traces, by model, batch size and GPUs. The traces derive iterations from one throughput per combination; every job bounds it.
question: How long do jobs run and wait?
--- */
-- throughput_from, throughput_to: steps per second that, rounded down to whole iterations, fit every job
-- is_one_throughput: such a throughput exists
SELECT model_name, batch_size, num_gpus, count(*) AS jobs, sum(duration_seconds) AS duration_seconds,
    sum(iterations) AS iterations, sum(duration_seconds) / nullif(sum(iterations), 0) AS step_seconds,
    max(iterations / nullif(duration_seconds, 0)) AS throughput_from,
    min((iterations + 1) / nullif(duration_seconds, 0)) AS throughput_to, throughput_from < throughput_to AS is_one_throughput
FROM staging.elasticflow_jobs
GROUP BY model_name, batch_size, num_gpus
ORDER BY model_name, batch_size, num_gpus
