/* ---
about: Leaf port of each NIC of a training task with a log; topology.task_ports has those of other tasks, too. No row depends on the loaded hours.
grain: [cluster, task, pod, hca]
columns:
  cluster: VARCHAR the cluster's folder
  task: VARCHAR the task's folder
  pod: VARCHAR the pod
  hca: VARCHAR the adapter, mlx5_n; with the adapter's port, as mlx4_0:2, where two ports of the adapter are listed; the interface of a port whose adapter no sheet names
  hca_index: BIGINT [1] index of the NIC in NCCL's list; lines about edges refer to this index
  server: VARCHAR the pod's server
  nic: VARCHAR network interface of the NIC; NULL where the NIC sheet lacks it
  switch: VARCHAR the leaf; NULL where the workbook has no port for the NIC
  port: VARCHAR the leaf's port
  evidence: VARCHAR evidence for the index, log where the pod's own log lists its NICs, else inferred:nic_sheet_order
  port_evidence: VARCHAR evidence for the port, as in nic_ports
checks:
  - evidence in ('log', 'inferred:nic_sheet_order')
sources: docs/metrics/tasks.md
--- */
WITH listed AS (               -- lists where each index is one device and each device one index, without fused devices
    SELECT DISTINCT cluster, task, pod, name, split_part(value, '/', 1) AS port, nic_index
    FROM staging.log_events
    WHERE kind = 'nccl_nic' AND name IS NOT NULL AND value <> 'virtual'
),

fused AS (                     -- indexes of fused devices: the listed device is a part of the fused device, or another device
    SELECT DISTINCT cluster, task, pod, nic_index
    FROM staging.log_events
    WHERE kind = 'nccl_nic' AND (name IS NULL OR value = 'virtual')
),

logged AS (
    SELECT
        l.cluster,
        l.task,
        l.pod,
        l.name || CASE WHEN count(*) OVER (PARTITION BY l.cluster, l.task, l.pod, l.name) > 1 THEN ':' || l.port ELSE '' END AS hca,
        l.name AS device,
        l.nic_index AS hca_index,
        count(*) OVER (PARTITION BY l.cluster, l.task, l.pod, l.nic_index) AS names,
        count(*) OVER (PARTITION BY l.cluster, l.task, l.pod, l.name, l.port) AS indexes
    FROM listed AS l
    ANTI JOIN fused USING (cluster, task, pod, nic_index)  -- filter
),

used AS (                      -- number of NICs that the task's logs list
    SELECT cluster, task, max(hca_index) + 1 AS nics
    FROM logged
    WHERE names = 1 AND indexes = 1
    GROUP BY cluster, task
),

sheet AS (
    SELECT cluster, server, hca, row_number() OVER (PARTITION BY cluster, server ORDER BY sheet_row) - 1 AS hca_index
    FROM staging.gpu_nics
),

indexed AS (
    SELECT p.cluster, p.task, p.pod, p.server, l.hca, l.device, l.hca_index, 'log' AS evidence
    FROM topology.logged_pods AS p
    JOIN logged AS l USING (cluster, task, pod)  -- whole
    WHERE l.names = 1 AND l.indexes = 1
    UNION ALL
    SELECT p.cluster, p.task, p.pod, p.server, s.hca, s.hca AS device, s.hca_index, 'inferred:nic_sheet_order' AS evidence
    FROM topology.logged_pods AS p
    ANTI JOIN logged USING (cluster, task, pod)  -- filter
    JOIN sheet AS s USING (cluster, server)  -- warning of task_ports
    LEFT JOIN used AS u USING (cluster, task)  -- once
    WHERE u.nics IS NULL OR s.hca_index < u.nics
)

SELECT i.cluster, i.task, i.pod, i.hca, i.hca_index, i.server, n.nic, n.switch, n.port, i.evidence, n.evidence AS port_evidence
FROM indexed AS i
-- warning of task_ports, once
LEFT JOIN topology.nic_ports AS n ON n.cluster = i.cluster AND n.server = i.server AND n.hca = i.device
