/* ---
about: Time of a training step in ElasticFlow's traces, by model, batch size and GPUs. The traces derive iterations from one throughput per combination; the rows bound this throughput by an interval.
grain: [model_name, batch_size, num_gpus]
columns:
  model_name: VARCHAR the model
  batch_size: BIGINT [1] the batch size
  num_gpus: BIGINT [1] GPUs
  jobs: BIGINT [1] jobs of the simulator's trace
  duration_seconds: BIGINT [s] sum of the jobs' run times
  iterations: BIGINT [1] sum of the jobs' iterations
  step_seconds: DOUBLE [s] duration_seconds / iterations
  throughput_from: DOUBLE [1/s] smallest throughput in steps per second that, rounded down to whole iterations, fits every job
  throughput_to: DOUBLE [1/s] upper end of the interval of such throughputs
  is_one_throughput: BOOLEAN true if such a throughput exists
measures:
  jobs, iterations: sum
  duration_seconds: sum, shown in h
  step_seconds: duration_seconds / iterations
  others: none
checks:
  - iterations > 0
sources: docs/metrics/jobs.md
--- */
SELECT
    model_name,
    batch_size,
    num_gpus,
    count(*) AS jobs,
    sum(duration_seconds) AS duration_seconds,
    sum(iterations) AS iterations,
    sum(duration_seconds) / nullif(sum(iterations), 0) AS step_seconds,
    max(iterations / nullif(duration_seconds, 0)) AS throughput_from,
    min((iterations + 1) / nullif(duration_seconds, 0)) AS throughput_to,
    max(iterations / nullif(duration_seconds, 0)) < min((iterations + 1) / nullif(duration_seconds, 0)) AS is_one_throughput
FROM staging.elasticflow_jobs
GROUP BY ALL
