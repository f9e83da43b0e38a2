"""Executors of jobs: this process, a pool of processes, a Ray cluster."""

from neuroncore.executors.execution import release
from neuroncore.executors.inprocess import InProcess
from neuroncore.executors.processes import pool
from neuroncore.executors.protocol import (
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
from neuroncore.executors.ray_actors import ray_cluster

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
