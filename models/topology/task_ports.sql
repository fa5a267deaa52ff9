/* ---
about: Leaf port of each NIC of a training task, from NCCL's NIC list and the workbook; of a task without a log, all access ports of its servers.
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
  evidence: VARCHAR evidence for the index, log where the pod's own log lists its NICs, else inferred:nic_sheet_order; of a task without a log listed or inferred:traffic
  port_evidence: VARCHAR evidence for the port, as in nic_ports and hour_owners
checks:
  - unique(cluster, task, pod, hca_index)
  - evidence in ('log', 'inferred:nic_sheet_order', 'listed', 'inferred:traffic')
  - warn: not null(port)
    says: "{task}, {pod}: no sheet names the switch port of {hca} of {server}"
  # a pod without NICs is missing from the task traffic tables; bytes of a NIC of two pods count for both
  - warn: "none: SELECT cluster, task, pod FROM topology.task_pods ANTI JOIN this USING (cluster, task, pod)"
    says: "{task}: no NIC of pod {pod} is known, so no table of task traffic has it"
  - warn: "none: SELECT cluster, task, server, hca FROM this WHERE server IS NOT NULL AND evidence IN ('log', 'inferred:nic_sheet_order') GROUP BY ALL HAVING count(*) > 1"
    says: "{task}: two pods or more use {hca} of {server}; its bytes count for each of them"
sources: docs/metrics/tasks.md
--- */
WITH owned AS (                     -- access ports of the servers of tasks without a log
    SELECT p.cluster, p.task, p.pod, p.server, coalesce(o.hca, o.nic) AS hca, o.nic, o.switch, o.port, p.source, o.evidence
    FROM topology.task_pods AS p
    JOIN topology.port_owners AS o USING (cluster, server)  -- warning
    WHERE
        p.source = 'listed'
        AND {{ port_class('o.switch', 'o.port') }} = 'access'
        AND (p.hcas IS NULL OR list_contains(regexp_split_to_array(p.hcas, '[ ,;+]+'), o.hca))
    UNION ALL
    SELECT p.cluster, p.task, p.pod, p.server, coalesce(o.hca, o.nic) AS hca, o.nic, o.switch, o.port, p.source, o.evidence
    FROM topology.task_pods AS p
    JOIN topology.hour_owners AS o USING (cluster, server)  -- check of task_traffic
    WHERE p.source = 'inferred:traffic' AND o.hour_utc = p.start_utc
)

SELECT cluster, task, pod, hca, hca_index, server, nic, switch, port, evidence, port_evidence
FROM topology.logged_ports
UNION ALL
SELECT
    cluster,
    task,
    pod,
    hca,
    row_number() OVER (PARTITION BY cluster, task, pod ORDER BY {{ natural('switch') }}, {{ natural('port') }}) - 1 AS hca_index,
    server,
    nic,
    switch,
    port,
    source AS evidence,
    evidence AS port_evidence
FROM owned
