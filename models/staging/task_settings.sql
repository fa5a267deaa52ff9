/* ---
about: 'Settings of each task as its logs print them: model, batch sizes, parallel strategy, precision, versions.'
grain: [cluster, task]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pods: BIGINT [1] pods with a log
  model: VARCHAR name or path of the model
  params: BIGINT [1] parameters, over all tensor and pipeline ranks
  layers: BIGINT [1] transformer layers
  hidden_size: BIGINT [1] width of the model
  attention_heads: BIGINT [1] attention heads per layer
  key_value_heads: BIGINT [1] key and value heads per layer
  ffn_size: BIGINT [1] width of the feed-forward layer
  vocabulary: BIGINT [1] tokens in the model's vocabulary
  sequence_length: BIGINT [1] tokens per sample
  micro_batch: BIGINT [1] samples per GPU and forward pass
  accumulation: BIGINT [1] micro batches per iteration
  global_batch: BIGINT [1] samples per iteration, over all GPUs
  world_size: BIGINT [1] ranks of the task
  data_parallel: BIGINT [1] data-parallel replicas of the model
  tensor_parallel: BIGINT [1] ranks that share a layer
  pipeline_parallel: BIGINT [1] pipeline stages
  zero_stage: BIGINT [1] DeepSpeed's ZeRO stage, 0 to 3; NULL without DeepSpeed
  precision: VARCHAR number format of weights, bf16, fp16 or fp32
  deepspeed_version: VARCHAR version of DeepSpeed; NULL without DeepSpeed
  nccl_version: VARCHAR version of NCCL; NULL where no line states it
  trainer: VARCHAR deepspeed, megatron, lightning or hf_trainer, detected from the lines of the log
  reduce_scatter: BOOLEAN true if DeepSpeed is configured to reduce-scatter gradients
  multi_rank_allreduce: BOOLEAN true if DeepSpeed reduces buckets of several owners at once, by all-reduce
  distributed_optimizer: BOOLEAN true if Megatron shards the optimizer
  gradient_bytes: BIGINT [B] size of one gradient value on the wire
  weight_bytes: BIGINT [B] size of one weight on the wire
  planned_iterations: BIGINT [1] planned iterations of the run
checks:
  - precision in ('bf16', 'fp16', 'fp32') or precision is null
  - trainer in ('deepspeed', 'megatron', 'lightning', 'hf_trainer') or trainer is null
sources: docs/formats/logs.md
--- */
WITH printed AS (              -- every setting with the first value of its highest-priority name
    SELECT e.cluster, e.task, s.setting, e.value
    FROM staging.log_events AS e
    JOIN reference.log_settings AS s USING (family, name)
    WHERE e.kind = 'config' AND lower(e.value) NOT IN ('none', 'null', '')
    QUALIFY row_number() OVER (PARTITION BY e.cluster, e.task, s.setting ORDER BY s.priority, e.pod, e.segment, e.item) = 1
),

numbers AS (
    SELECT *
    FROM (SELECT cluster, task, setting, {{ whole('value') }} AS number FROM printed)
    PIVOT (max(number) FOR setting IN (
        'params', 'layers', 'hidden_size', 'attention_heads', 'key_value_heads', 'ffn_size', 'vocabulary', 'sequence_length',
        'micro_batch', 'accumulation', 'global_batch', 'world_size', 'data_parallel', 'tensor_parallel', 'pipeline_parallel',
        'zero_stage', 'planned_iterations'
    ) GROUP BY cluster, task)
),

words AS (
    SELECT *
    FROM printed
    PIVOT (max(value) FOR setting IN (
        'model', 'bf16', 'fp16', 'dtype', 'deepspeed_version', 'reduce_scatter', 'multi_rank_allreduce', 'communication_dtype',
        'distributed_optimizer', 'gradients_in_fp32'
    ) GROUP BY cluster, task)
),

shards AS (                    -- Megatron counts the parameters of each tensor and pipeline rank
    SELECT cluster, task, name, min({{ whole('value') }}) AS params
    FROM staging.log_events
    WHERE kind = 'config' AND starts_with(name, 'parameters_on_rank_')
    GROUP BY cluster, task, name
),

sharded AS (
    SELECT cluster, task, sum(params) AS all_params
    FROM shards
    GROUP BY cluster, task
),

members AS (                   -- communicators that were not split off another one, by their order in each process
    SELECT
        cluster,
        task,
        ranks,
        rank,
        coalesce(host, pod) || ':' || pid AS process,
        row_number() OVER (PARTITION BY cluster, task, pod, host, pid, rank, ranks ORDER BY segment) AS turn
    FROM staging.log_events
    WHERE kind = 'nccl_init' AND NOT coalesce(starts_with(name, 'parent '), false)
),

claims AS (                    -- two processes claim the same rank: communicators of this size cover only a part of the task
    SELECT cluster, task, ranks, count(DISTINCT process) AS processes
    FROM members
    GROUP BY cluster, task, ranks, rank, turn
),

largest AS (                   -- without a printed world size, the largest communicator is the world, unless that is impossible
    SELECT cluster, task, CASE WHEN max(processes) <= 1 THEN ranks END AS largest_communicator
    FROM claims
    GROUP BY cluster, task, ranks
    QUALIFY row_number() OVER (PARTITION BY cluster, task ORDER BY ranks DESC) = 1
),

seen AS (                      -- every task with a log, including logs without settings
    SELECT
        cluster,
        task,
        count(DISTINCT pod) AS pods,
        min(value) FILTER (WHERE kind = 'nccl_version') AS nccl_version,
        CASE
            WHEN bool_or(family = 'megatron' AND kind IN ('config', 'iteration')) THEN 'megatron'
            WHEN bool_or(family = 'deepspeed' AND name IN ('deepspeed_version', 'zero_stage')) THEN 'deepspeed'
            WHEN bool_or(family = 'lightning' AND kind IN ('iteration', 'progress')) THEN 'lightning'
            WHEN bool_or(family = 'hf_trainer' AND kind IN ('train_start', 'iteration', 'progress')) THEN 'hf_trainer'
        END AS trainer
    FROM staging.log_events
    GROUP BY cluster, task
),

known AS (
    SELECT
        *,
        coalesce(world_size, largest_communicator) AS ranks,
        coalesce(tensor_parallel, 1) * coalesce(pipeline_parallel, 1) AS model_ranks,
        CASE
            WHEN lower(bf16) = 'true' OR dtype IN ('bfloat16', 'torch.bfloat16') THEN 'bf16'
            WHEN lower(fp16) = 'true' OR dtype IN ('float16', 'torch.float16') THEN 'fp16'
            WHEN dtype IN ('float32', 'torch.float32') OR lower(bf16) = 'false' THEN 'fp32'
        END AS number_format
    FROM seen
    LEFT JOIN numbers USING (cluster, task)
    LEFT JOIN words USING (cluster, task)
    LEFT JOIN largest USING (cluster, task)
    LEFT JOIN sharded USING (cluster, task)
)

SELECT
    cluster,
    task,
    pods,
    model,
    coalesce(params, all_params) AS params,
    layers,
    hidden_size,
    attention_heads,
    key_value_heads,
    ffn_size,
    vocabulary,
    sequence_length,
    micro_batch,
    coalesce(
        accumulation,
        CASE WHEN global_batch % (micro_batch * data_parallel) = 0 THEN global_batch // (micro_batch * data_parallel) END
    ) AS accumulation,
    coalesce(global_batch, micro_batch * accumulation * (ranks // model_ranks)) AS global_batch,
    ranks AS world_size,
    coalesce(data_parallel, ranks // model_ranks) AS data_parallel,
    CASE WHEN ranks IS NOT NULL THEN coalesce(tensor_parallel, 1) END AS tensor_parallel,
    CASE WHEN ranks IS NOT NULL THEN coalesce(pipeline_parallel, 1) END AS pipeline_parallel,
    zero_stage,
    number_format AS precision,
    deepspeed_version,
    nccl_version,
    trainer,
    'true' = lower(reduce_scatter) AS reduce_scatter,
    'true' = lower(multi_rank_allreduce) AS multi_rank_allreduce,
    'true' = lower(distributed_optimizer) AS distributed_optimizer,
    CASE
        WHEN trainer = 'megatron' AND lower(gradients_in_fp32) = 'true' THEN 4
        WHEN communication_dtype IN ('fp32', 'torch.float32') THEN 4
        WHEN number_format IN ('bf16', 'fp16') THEN 2
        WHEN number_format = 'fp32' THEN 4
    END AS gradient_bytes,
    CASE WHEN number_format IN ('bf16', 'fp16') THEN 2 WHEN number_format = 'fp32' THEN 4 END AS weight_bytes,
    planned_iterations
FROM known
