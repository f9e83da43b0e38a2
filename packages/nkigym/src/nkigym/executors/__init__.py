"""Where jobs run: in this process, in a pool of processes, on a Ray cluster."""

from nkigym.executors.inprocess import InProcess
from nkigym.executors.processes import pool
from nkigym.executors.protocol import (
    Event,
    Executor,
    ExecutorError,
    ExecutorLostError,
    Failed,
    Finished,
    Job,
    Limits,
    Report,
    Reported,
    Watch,
    WorkerLost,
    WorkerVersionError,
)
from nkigym.executors.ray_actors import LOCAL, ray_cluster

__all__ = [
    "LOCAL",
    "Event",
    "Executor",
    "ExecutorError",
    "ExecutorLostError",
    "Failed",
    "Finished",
    "InProcess",
    "Job",
    "Limits",
    "Report",
    "Reported",
    "Watch",
    "WorkerLost",
    "WorkerVersionError",
    "pool",
    "ray_cluster",
]
