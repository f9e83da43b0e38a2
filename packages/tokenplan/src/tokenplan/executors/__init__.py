"""Executors of jobs: this process, a pool of processes, a Ray cluster."""

from tokenplan.executors.execution import release
from tokenplan.executors.inprocess import InProcess
from tokenplan.executors.processes import pool
from tokenplan.executors.protocol import (
    AddressError,
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
from tokenplan.executors.ray_actors import ray_cluster

__all__ = [
    "AddressError",
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
    "release",
]
