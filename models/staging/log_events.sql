/* ---
about: What the lines of training logs say, a row an event. Only columns that the kind of event fills are not NULL.
grain: [cluster, task, pod, segment, item]
materialize: view
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the log's name without .log
  file: VARCHAR the log's path in its release
  line: INTEGER [1] line of the log, from 1
  segment: INTEGER [1] piece of the log between line feeds or carriage returns, from 1
  item: INTEGER [1] event of the segment, from 0
  family: VARCHAR who writes such lines, deepspeed, hf_trainer, megatron, nccl, torchrun or python
  kind: VARCHAR what it says, see docs/formats/logs.md
  level: VARCHAR INFO, WARNING, ERROR ...; NULL where the line has none
  time_utc: TIMESTAMP time of the line, as the log has it; NULL where it has none
  name: VARCHAR name of a setting or of what is spoken of
  value: VARCHAR a setting's value, or what has no column of its own
  step: BIGINT [1] iteration
  steps: BIGINT [1] iterations of the whole run
  seconds: DOUBLE [s] time an iteration as printed, often smoothed
  samples: BIGINT [1] samples an iteration
  loss: DOUBLE [1] loss as printed
  learning_rate: DOUBLE [1] learning rate as printed
  rank: INTEGER [1] rank that speaks or is spoken of
  ranks: INTEGER [1] ranks of its communicator
  local_rank: INTEGER [1] its GPU in its server; of service threads not to be trusted
  host: VARCHAR host name, from NCCL's prefix
  pid: BIGINT [1] process, from NCCL's prefix
  tid: BIGINT [1] thread, from NCCL's prefix
  communicator: VARCHAR pointer of the communicator in that process
  channel: INTEGER [1] channel of the communicator
  channels: INTEGER [1] how many it has
  src_rank: INTEGER [1] sending rank of an edge
  dst_rank: INTEGER [1] receiving rank of an edge
  direction: VARCHAR send or receive, as the writer of the line sees the edge
  transport: VARCHAR NET/IB, P2P/IPC ...
  nic_index: INTEGER [1] index of the NIC in the list of the host that wrote the line
  text: VARCHAR the segment as it stands, at most 4,000 characters
sources: docs/formats/logs.md
--- */
SELECT
    f.cluster,
    {{ task_name('e.filename') }} AS task,
    {{ pod_name('e.filename') }} AS pod,
    e.filename AS file,
    e.line,
    e.segment,
    e.item,
    e.family,
    e.kind,
    e.level,
    e.time_utc,
    e.name,
    e.value,
    e.step,
    e.steps,
    e.seconds,
    e.samples,
    e.loss,
    e.learning_rate,
    e.rank,
    e.ranks,
    e.local_rank,
    e.host,
    e.pid,
    e.tid,
    e.communicator,
    e.channel,
    e.channels,
    e.src_rank,
    e.dst_rank,
    e.direction,
    e.transport,
    e.nic_index,
    e.text
FROM raw.log_events AS e
JOIN raw.files AS f ON f.release_path = e.filename
WHERE f.status IN ('read', 'partial')
