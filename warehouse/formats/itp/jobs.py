"""ITP jobs as recorded, and the ElasticFlow jobs derived from them: `cluster01.csv` .. `cluster10.csv`, `195job.csv`.

Docs: docs/formats/itp.md. Both kinds of file have the same names; the header tells them apart. The 195 jobs of the
testbed repeat jobs of one cluster and feed a relation of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from warehouse.base.startup import regex
from warehouse.formats.base import RawFile
from warehouse.formats.csv_headers import NOT_THAT
from warehouse.formats.named_csv import DEVICES, INTEGER, NAME, WORD, NamedCsv

RAW = {
    "job_id": NAME.needed(),
    "submission_time": INTEGER.needed(),
    "duration": INTEGER.needed(),
    "num_gpu": DEVICES.needed(),
}
ELASTICFLOW = {
    "job_id": NAME.needed(),
    "submission_time": INTEGER.needed(),
    "num_iteration": INTEGER.needed(),
    "model_name": WORD.needed(),
    "deadline": INTEGER.needed(),
    "batch_size": INTEGER.needed(),
    "num_gpu": DEVICES.needed(),
    "duration": INTEGER.needed(),
}
_CLUSTER = regex(r"(cluster\d{2})\.csv(?:\.gz|\.zst)?", re.IGNORECASE)
_TESTBED = regex(r"195job\.csv(?:\.gz|\.zst)?", re.IGNORECASE)


@dataclass
class ItpJobs(NamedCsv):
    """Formats `itp.jobs`, `itp.elasticflow_jobs` and `itp.testbed_jobs`."""

    folder: str = ""
    """Name of the archive that holds the files."""

    def placed(self, file: RawFile, header: Sequence[str]) -> RawFile:
        """Set the cluster by the file name. Raise ValueError for an ElasticFlow header where raw jobs are expected."""
        if "num_iteration" in header and "num_iteration" not in self.cells:
            raise ValueError(f"{NOT_THAT}{self.name}")
        name = file.path.name.lower()
        found = _CLUSTER.fullmatch(name)
        cluster = found[1] if found else "testbed"
        return file.but(cluster=cluster, release_path=f"itp/{self.folder}/{name}")


JOBS = ItpJobs(
    "itp.jobs", "itp_jobs", "ITP jobs as published, with seconds counted from 2021-03-04.", RAW,
    key="job_id", file_name=_CLUSTER, ends_with_newline=False, folder="raw-traces",
)  # fmt: skip
ELASTICFLOW_JOBS = ItpJobs(
    "itp.elasticflow_jobs", "itp_elasticflow_jobs", "ITP jobs with a synthetic model, batch size and deadline.",
    ELASTICFLOW, key="job_id", file_name=_CLUSTER, ends_with_newline=False, folder="elasticflow-traces",
)  # fmt: skip
TESTBED_JOBS = ItpJobs(
    "itp.testbed_jobs", "itp_testbed_jobs", "195 jobs of cluster02 over again, for ElasticFlow's own testbed.",
    ELASTICFLOW, key="job_id", file_name=_TESTBED, ends_with_newline=False, folder="elasticflow-traces",
)  # fmt: skip
FORMATS = (JOBS, ELASTICFLOW_JOBS, TESTBED_JOBS)
