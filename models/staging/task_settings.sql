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
    SELECT
        e.cluster,
        e.task,
        s.setting,
        e.value,
        row_number() OVER (
            PARTITION BY e.cluster, e.task, s.setting ORDER BY s.priority, e.pod, e.segment, e.item
        ) AS place
    FROM staging.log_events AS e
    JOIN reference.log_settings AS s ON s.family = e.family AND s.name = e.name
    WHERE e.kind = 'config' AND lower(e.value) NOT IN ('none', 'null', '')
),

shards AS (                    -- Megatron counts the parameters of each tensor and pipeline rank
    SELECT cluster, task, name, min({{ whole('value') }}) AS params
    FROM staging.log_events
    WHERE kind = 'config' AND starts_with(name, 'parameters_on_rank_')
    GROUP BY cluster, task, name
),

sharded AS (
    SELECT cluster, task, sum(params) AS params
    FROM shards
    GROUP BY cluster, task
),

said AS (
    SELECT
        cluster,
        task,
        max(value) FILTER (WHERE setting = 'model') AS model,
        max({{ whole('value') }}) FILTER (WHERE setting = 'params') AS params,
        max({{ whole('value') }}) FILTER (WHERE setting = 'layers') AS layers,
        max({{ whole('value') }}) FILTER (WHERE setting = 'hidden_size') AS hidden_size,
        max({{ whole('value') }}) FILTER (WHERE setting = 'attention_heads') AS attention_heads,
        max({{ whole('value') }}) FILTER (WHERE setting = 'key_value_heads') AS key_value_heads,
        max({{ whole('value') }}) FILTER (WHERE setting = 'ffn_size') AS ffn_size,
        max({{ whole('value') }}) FILTER (WHERE setting = 'vocabulary') AS vocabulary,
        max({{ whole('value') }}) FILTER (WHERE setting = 'sequence_length') AS sequence_length,
        max({{ whole('value') }}) FILTER (WHERE setting = 'micro_batch') AS micro_batch,
        max({{ whole('value') }}) FILTER (WHERE setting = 'accumulation') AS accumulation,
        max({{ whole('value') }}) FILTER (WHERE setting = 'global_batch') AS global_batch,
        max({{ whole('value') }}) FILTER (WHERE setting = 'world_size') AS world_size,
        max({{ whole('value') }}) FILTER (WHERE setting = 'data_parallel') AS data_parallel,
        max({{ whole('value') }}) FILTER (WHERE setting = 'tensor_parallel') AS tensor_parallel,
        max({{ whole('value') }}) FILTER (WHERE setting = 'pipeline_parallel') AS pipeline_parallel,
        max({{ whole('value') }}) FILTER (WHERE setting = 'zero_stage') AS zero_stage,
        max({{ whole('value') }}) FILTER (WHERE setting = 'planned_iterations') AS planned_iterations,
        max(value) FILTER (WHERE setting = 'bf16') AS bf16,
        max(value) FILTER (WHERE setting = 'fp16') AS fp16,
        max(value) FILTER (WHERE setting = 'dtype') AS dtype,
        max(value) FILTER (WHERE setting = 'deepspeed_version') AS deepspeed_version,
        max(value) FILTER (WHERE setting = 'reduce_scatter') AS reduce_scatter,
        max(value) FILTER (WHERE setting = 'multi_rank_allreduce') AS multi_rank_allreduce,
        max(value) FILTER (WHERE setting = 'communication_dtype') AS communication_dtype,
        max(value) FILTER (WHERE setting = 'distributed_optimizer') AS distributed_optimizer,
        max(value) FILTER (WHERE setting = 'gradients_in_fp32') AS gradients_in_fp32
    FROM printed
    WHERE place = 1
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

sized AS (
    SELECT
        v.*,
        s.pods,
        s.nccl_version,
        s.trainer,
        s.cluster AS of_cluster,
        s.task AS of_task,
        coalesce(v.params, h.params) AS all_params,
        coalesce(v.world_size, g.largest_communicator) AS ranks,
        coalesce(v.tensor_parallel, 1) * coalesce(v.pipeline_parallel, 1) AS model_ranks,
        CASE
            WHEN lower(v.bf16) = 'true' OR v.dtype IN ('bfloat16', 'torch.bfloat16') THEN 'bf16'
            WHEN lower(v.fp16) = 'true' OR v.dtype IN ('float16', 'torch.float16') THEN 'fp16'
            WHEN v.dtype IN ('float32', 'torch.float32') OR lower(v.bf16) = 'false' THEN 'fp32'
        END AS number_format
    FROM seen AS s
    LEFT JOIN said AS v ON v.cluster = s.cluster AND v.task = s.task
    LEFT JOIN largest AS g ON g.cluster = s.cluster AND g.task = s.task
    LEFT JOIN sharded AS h ON h.cluster = s.cluster AND h.task = s.task
)

SELECT
    of_cluster AS cluster,
    of_task AS task,
    pods,
    model,
    all_params AS params,
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
FROM sized
