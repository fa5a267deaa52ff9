/* ---
about: 'Each training task in one row: settings, speed, and utilization of the GPUs'' peak (MFU).'
grain: [cluster, task]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  model: VARCHAR name or path of the model
  params: BIGINT [1] parameters
  layers: BIGINT [1] transformer layers
  hidden_size: BIGINT [1] width of the model
  sequence_length: BIGINT [1] tokens per sample
  micro_batch: BIGINT [1] samples per GPU and forward pass
  accumulation: BIGINT [1] micro batches per iteration
  world_size: BIGINT [1] ranks
  data_parallel: BIGINT [1] data-parallel replicas of the model
  tensor_parallel: BIGINT [1] ranks that share a layer
  pipeline_parallel: BIGINT [1] pipeline stages
  zero_stage: BIGINT [1] DeepSpeed's ZeRO stage, 0 to 3; NULL without DeepSpeed
  precision: VARCHAR number format of weights
  trainer: VARCHAR deepspeed, megatron or hf_trainer
  nccl_version: VARCHAR version of NCCL; NULL where no line states it
  pods: BIGINT [1] pods of the task
  iterations: BIGINT [1] iterations with a line
  iteration_p50_seconds: DOUBLE [s] median time of an iteration
  tokens_per_iteration: BIGINT [1] samples x sequence length
  tokens_per_second: DOUBLE [1/s] tokens_per_iteration over the median iteration
  gpu_model: VARCHAR GPUs of the cluster, from reference.clusters
  mfu_6n: DOUBLE [1] share of the GPUs' peak at 6 operations per parameter and token
  mfu_6n_12lhs: DOUBLE [1] share of the GPUs' peak, with 12 x layers x hidden size x sequence length added for attention
  start_utc: TIMESTAMP earliest pod start, else first line with a time; of a task without a log as listed
  end_utc: TIMESTAMP last line with a time; of a task without a log as listed
  restarts: BIGINT [1] restarts that its logs show
  down_seconds: DOUBLE [s] time without training in these restarts; 0 without restarts, NULL where no line has a time
  warnings: BIGINT [1] lines of level WARNING
  errors: BIGINT [1] lines of level ERROR or CRITICAL, and tracebacks
  source: VARCHAR log, or listed for a task of tasks.csv without a log
time: start_utc
dimensions: [cluster, task, model, trainer, precision, gpu_model, source]
measures:
  pods, iterations, restarts, down_seconds, warnings, errors: sum
  mfu_6n, mfu_6n_12lhs: none, shown in %
  tokens_per_second: none                                    # tasks run at different times
  others: none
checks:
  - mfu_6n between 0 and 1 or mfu_6n is null
  - warn: iteration_p50_seconds is not null or source = 'listed'
    says: "{task}: no log shows how long an iteration took ({pods} pods, {iterations:,} iterations with a line, {errors:,} errors)"
  - none: SELECT cluster, task FROM staging.task_settings ANTI JOIN this USING (cluster, task)
sources: docs/metrics/tasks.md
--- */
WITH speed AS (
    SELECT cluster, task, count(*) AS iterations, median(seconds) AS p50_seconds, max(tokens) AS tokens
    FROM metrics.task_iterations
    GROUP BY cluster, task
),

spans AS (
    SELECT
        cluster,
        task,
        count(*) AS pods,
        coalesce(min(pod_start_utc), min(first_line_utc)) AS start_utc,
        max(last_line_utc) AS end_utc,
        'log' AS source
    FROM metrics.task_startup
    GROUP BY cluster, task
    UNION ALL
    SELECT cluster, task, count(*) AS pods, min(start_utc) AS start_utc, max(end_utc) AS end_utc, 'listed' AS source
    FROM topology.task_pods
    WHERE source = 'listed'
    GROUP BY cluster, task
),

levels AS (
    SELECT
        cluster,
        task,
        count(*) FILTER (WHERE level = 'WARNING' AND item = 0) AS warnings,
        count(*) FILTER (WHERE level IN ('ERROR', 'CRITICAL') AND item = 0) AS errors
    FROM staging.log_events
    GROUP BY cluster, task
),

stops AS (
    SELECT cluster, task, sum(restarts) AS restarts, sum(down_seconds::DECIMAL(18, 6))::DOUBLE AS down_seconds
    FROM metrics.task_restarts
    GROUP BY cluster, task
),

work AS (                      -- operations per second over the peak of the GPUs
    SELECT
        s.cluster,
        s.task,
        v.tokens,
        v.tokens / v.p50_seconds AS tokens_per_second,
        6 * s.params AS flops_6n,
        6 * s.params + 12 * s.layers * s.hidden_size * s.sequence_length AS flops_6n_12lhs,
        s.world_size * g.peak_flops AS peak_flops,
        c.gpu_model
    FROM staging.task_settings AS s
    LEFT JOIN speed AS v USING (cluster, task)  -- once
    LEFT JOIN reference.clusters AS c USING (cluster)  -- grain
    LEFT JOIN reference.gpu_models AS g ON g.gpu_model = c.gpu_model AND g.precision = s.precision  -- grain
)

SELECT
    t.cluster,
    t.task,
    s.model,
    s.params,
    s.layers,
    s.hidden_size,
    s.sequence_length,
    s.micro_batch,
    s.accumulation,
    s.world_size,
    s.data_parallel,
    s.tensor_parallel,
    s.pipeline_parallel,
    s.zero_stage,
    s.precision,
    s.trainer,
    s.nccl_version,
    t.pods,
    coalesce(v.iterations, 0) AS iterations,
    v.p50_seconds AS iteration_p50_seconds,
    v.tokens AS tokens_per_iteration,
    w.tokens_per_second,
    w.gpu_model,
    w.tokens_per_second * w.flops_6n / w.peak_flops AS mfu_6n,
    w.tokens_per_second * w.flops_6n_12lhs / w.peak_flops AS mfu_6n_12lhs,
    t.start_utc,
    t.end_utc,
    coalesce(r.restarts, 0) AS restarts,
    CASE WHEN r.restarts IS NULL THEN 0 ELSE r.down_seconds END AS down_seconds,
    coalesce(l.warnings, 0) AS warnings,
    coalesce(l.errors, 0) AS errors,
    t.source
FROM spans AS t
LEFT JOIN staging.task_settings AS s USING (cluster, task)  -- check, once
LEFT JOIN speed AS v USING (cluster, task)  -- once
LEFT JOIN levels AS l USING (cluster, task)  -- once
LEFT JOIN stops AS r USING (cluster, task)  -- once
LEFT JOIN work AS w USING (cluster, task)  -- grain, once
