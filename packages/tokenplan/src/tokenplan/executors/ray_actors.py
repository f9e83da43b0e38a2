"""Workers of a Ray cluster: an address, or a cluster of its own on this machine.

The files of a local cluster (sessions, token) are in a folder that is removed at the end. All its
ports are on the loopback address, behind a token; its usage statistics are off.
"""

from __future__ import annotations

import ctypes
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, SimpleQueue
from secrets import token_hex
from select import select
from shutil import rmtree
from typing import Any, NamedTuple

from neuroncore.commands.folders import locked, new_folder, remove_abandoned
from neuroncore.commands.interruption import uninterrupted
from neuroncore.errors import KernelError
from tokenplan.executors.execution import execute_to_send, release
from tokenplan.executors.messages import MessageError, read_message
from tokenplan.executors.protocol import (
    AddressError,
    ExecutorError,
    ExecutorLostError,
    Job,
    Limits,
    Reported,
)
from tokenplan.executors.ray_address import address_text, answers, parse_address
from tokenplan.executors.ray_processes import kill_processes_of
from tokenplan.executors.supervised import go_on_supervised, start_supervised
from tokenplan.executors.workers import Gone, Message, Ready, WorkerExecutor

HEAD, LOOPBACK = f"{__name__}:run_head", "127.0.0.1"
PREFIX = "nki-ray-"
"""Of the folders of local clusters."""
LONGEST_FOLDER = 40
"""Characters of a session folder's parent: a socket's path in it has at most 107."""
RANDOM_CHARACTERS = 8
"""Of the name of a temporary folder."""
STORE_BYTES = 80 << 20
"""Of a local cluster's object store, near the least that Ray accepts: values are small."""
START_S = 240.0
"""How long a cluster may take to start, or to connect to, on a busy machine."""
NODE_S = 15.0
"""How long this machine may take to find its node of a cluster; Ray gives up after 60 s."""
CHECK_S = 1.0
"""How often that is tried during a run, and the processes of a local cluster are looked at."""
REMOVAL_S = 10.0
"""How long the folder of a lost cluster is removed again while processes that end write there."""
_NO_NODE = "this machine has to be a node of the cluster: ray start --address=HOST:PORT"
_BUSY = "the same command again on a less busy machine: Ray ends where a part of it starts late"
_LATE = "the cluster has not started within {:g} s"
THREADS = 2
"""Of a worker: a job is interrupted while it runs."""


def ray_cluster(
    address: str, jobs: int, limits: Limits | None = None, preload: str = "",
    folder: Path | None = None,
) -> WorkerExecutor:  # fmt: skip
    """An executor of `jobs` workers of the cluster at `address` (HOST:PORT), or of a local one
    ("local") whose files are below `folder`, where its path is short enough (default: temporary).

    Raises AddressError where Ray is absent or the address does not answer.
    """
    if find_spec("ray") is None:
        raise AddressError("Ray is not installed", hint="pip install 'tokenplan[ray]'")
    host = parse_address(address)
    return WorkerExecutor("ray", _Cluster(host, preload, folder), jobs, limits or Limits())


def _started(connect: Callable[[], Any]) -> Any:
    """The result of a call that waits forever where the head is lost meanwhile.

    Raises ExecutorLostError after START_S.
    """
    results: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            results.put((connect(), None))
        except BaseException as wrong:
            results.put((None, wrong))

    threading.Thread(target=run, daemon=True).start()
    try:
        found, wrong = results.get(timeout=START_S)
    except Empty:
        raise ExecutorLostError(_LATE.format(START_S)) from None
    if isinstance(wrong, KernelError):
        wrong.place = KernelError("").place  # the caller's, not the thread's
    if wrong is not None:
        raise wrong
    return found


class _Actor(NamedTuple):
    """A worker, and what is expected of it: its release, then the messages of a job."""

    actor: Any
    pending: list[Any]


class _Cluster:
    """The fleet of a cluster."""

    def __init__(self, head: tuple[str, int] | None, preload: str, folder: Path | None) -> None:
        self._head, self._preload, self._folder = head, preload, folder
        self._environment: dict[str, str] | None = None
        self._opened = ExitStack()
        self._local: subprocess.Popen[bytes] | None = None
        self._ray: Any = None
        self._next_check = 0.0

    def open(self, jobs: int) -> None:
        if "ray" in sys.modules and sys.modules["ray"].is_initialized():
            raise ExecutorError("this process is connected to a Ray cluster already")
        self._environment = dict(os.environ)
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        if self._head is None:
            self._head = self._local_head(jobs)
        with uninterrupted():  # Ray crashes otherwise, and sets a handler of SIGTERM
            self._ray = _started(self._connected)

    def start(self, number: int) -> _Actor:
        ray = self._ray
        remote = ray.remote(
            num_cpus=1, max_restarts=0, max_task_retries=0, max_concurrency=THREADS
        )(RayWorker)  # fmt: skip
        actor = remote.remote(self._preload)
        return _Actor(actor, [actor.release.remote()])

    def _connected(self) -> Any:
        assert self._head is not None
        ray = import_module("ray")
        _read_environment()
        logging.getLogger("ray").setLevel(logging.ERROR)  # its import sets another
        job: Any = import_module("ray.job_config").JobConfig()
        job._client_job = True  # no folder of the driver is the first in which workers find modules
        named: dict[str, Any] = {
            "log_to_driver": False, "configure_logging": False, "job_config": job
        }  # fmt: skip
        if is_local := self._local is not None:
            named["_node_ip_address"] = LOOPBACK
        try:
            with _local_settings() if is_local else _short_wait():
                ray.init(address=address_text(self._head), **named)
        except (ConnectionError, RuntimeError, TimeoutError) as wrong:
            error = ExecutorLostError if is_local else AddressError
            hint = None if is_local else _NO_NODE
            raise error("the cluster cannot be used", got=_first_line(wrong), hint=hint) from None
        return ray

    def _local_head(self, jobs: int) -> tuple[str, int]:
        """The address of a cluster that ends with this process."""
        made = self._opened.enter_context(new_folder(PREFIX, _short_parent(self._folder)))
        self._opened.callback(_remove, made)
        (made / "token").touch(0o600)
        (made / "token").write_text(token_hex(32))
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(made / "token")}
        os.environ.update(token | NICENESS)
        with (made / "log").open("w+") as log:
            self._local = local = start_supervised(
                HEAD, str(made), str(jobs), variables=os.environ, stdout=subprocess.PIPE, stderr=log
            )
            assert local.stdout is not None
            if not select([local.stdout], [], [], START_S)[0]:
                raise ExecutorLostError(_LATE.format(START_S))
            host, _, port = local.stdout.readline().decode().strip().rpartition(":")
            if not host:
                log.seek(0)
                lines = log.read().strip().splitlines() or ["its process has ended"]
                raise ExecutorLostError("the cluster has not started", got=lines[-1], hint=_BUSY)
        return host, int(port)

    def send(self, worker: _Actor, job: Job, limits: Limits) -> None:
        run = worker.actor.run.options(num_returns="streaming")
        worker.pending[:] = [run.remote(job, Limits(num_bytes=limits.num_bytes))]

    def interrupt(self, worker: _Actor) -> bool:
        worker.actor.interrupt.remote()
        return True

    def log(self, worker: _Actor) -> str:
        return ""

    def stop(self, worker: _Actor) -> None:
        self._ray.kill(worker.actor)

    def receive(self, workers: list[_Actor], timeout_s: float) -> Iterator[tuple[_Actor, Message]]:
        by_pending = {worker.pending[0]: worker for worker in workers if worker.pending}
        ready, _ = self._ray.wait(list(by_pending), timeout=timeout_s)
        for pending in ready:
            yield by_pending[pending], self._message(by_pending[pending], pending)
        self._check_head()

    def _check_head(self) -> None:
        """Workers may go on for a minute without the head. Raises ExecutorLostError."""
        assert self._head is not None
        if time.monotonic() < self._next_check:
            return
        if not answers(self._head):
            raise ExecutorLostError(
                f"the head of the cluster, {address_text(self._head)}, does not answer",
                hint="what was reported is in the store; run the same command again",
            )  # fmt: skip
        self._next_check = time.monotonic() + CHECK_S

    def _message(self, worker: _Actor, pending: Any) -> Message:
        ray = self._ray
        try:
            is_job = isinstance(pending, ray.ObjectRefGenerator)
            message = read_message(ray.get(next(pending) if is_job else pending))
        except (ray.exceptions.RayError, MessageError, StopIteration) as wrong:
            worker.pending.clear()
            return Gone(_first_line(wrong), str(wrong))
        if not isinstance(message, Reported):
            worker.pending.clear()
        return message

    def close(self) -> None:
        with uninterrupted():
            self._close()

    def _close(self) -> None:
        if self._ray is not None:
            self._ray.shutdown()
        if self._environment is not None:
            os.environ.clear()
            os.environ.update(self._environment)
            if self._ray is not None:
                _read_environment()
        if self._local is not None:
            with self._local as local:
                assert local.stdin is not None
                local.stdin.close()  # which ends it
        self._opened.close()


def run_head(folder: str, jobs: str) -> None:
    """The process of a local cluster: prints its address, ends where a process of it has ended.

    Agents of Ray outlive its other processes, without a mark by which they are found; they are
    children of the supervisor then, which ends them and removes the folder.
    """
    with locked(Path(folder)):
        go_on_supervised(at_end=partial(rmtree, folder, ignore_errors=True))
        _run_node(folder, jobs)


def _run_node(folder: str, jobs: str) -> None:
    services: Any = import_module("ray._private.services")
    services.get_node = partial(_registered, services.get_node)
    with _local_settings():
        node = import_module("ray._private.node").Node(
            import_module("ray._private.parameter").RayParams(
                node_ip_address=LOOPBACK, num_cpus=int(jobs), include_dashboard=False,
                object_store_memory=STORE_BYTES, temp_dir=folder, include_log_monitor=False,
                no_monitor=True,
            ),
            head=True, shutdown_at_exit=False, spawn_reaper=True,
        )  # fmt: skip
    print(node.address, flush=True)
    while not node.dead_processes():
        time.sleep(CHECK_S)


def _registered(get_node: Callable[..., Any], *given: Any) -> Any:
    """A node's record, once its cluster has it, unless a process of it ends: Ray waits for 30 s."""
    end = time.monotonic() + START_S
    while True:
        try:
            return get_node(*given)
        except RuntimeError:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended or time.monotonic() > end:
                raise
            time.sleep(0.1)


NICENESS = {"RAY_worker_niceness": "0"}
"""Of workers, beside the driver's. With Ray's own, 15, they starve beside other work."""
LOCAL_SETTINGS = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": False, "ENABLE_RAY_CLUSTER": False}
"""Workers run the driver's Python: of a driver below `uv run`, Ray would start each by `uv run`,
an environment of its own, seconds later, with a cache in HOME. Without other nodes, Ray's ports are
on the loopback address; otherwise it replaces that address by one of the network."""


def _local_settings() -> AbstractContextManager[None]:
    """Set what environment variables decide when Ray is imported, which may have been before."""
    return _replaced(import_module("ray._private.ray_constants"), LOCAL_SETTINGS)


def _short_wait() -> AbstractContextManager[None]:
    """Look for this machine's node of a cluster for NODE_S."""
    services: Any = import_module("ray._private.services")
    node = partial(services.get_node_to_connect_for_driver, timeout_seconds=NODE_S)
    return _replaced(services, {"get_node_to_connect_for_driver": node})


@contextmanager
def _replaced(module: Any, values: Mapping[str, Any]) -> Iterator[None]:
    """Other values of a module's names."""
    kept = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(kept)


def _read_environment() -> None:
    """Ray caches the token and its mode; a second cluster of this process has others."""
    raylet = import_module("ray._raylet")
    raylet.Config.initialize("")
    raylet.AuthenticationTokenLoader.instance().reset_cache()


def _first_line(wrong: BaseException) -> str:
    return f"{type(wrong).__name__}: {str(wrong).partition(chr(10))[0]}"


def _short_parent(folder: Path | None) -> Path:
    """The folder, or the temporary one where that path is too long for Ray's sockets; without
    clusters whose processes were all killed.

    Raises ExecutorError where no path is short enough.
    """
    places = [place for place in (folder, Path(tempfile.gettempdir())) if place is not None]
    for place in places:
        remove_abandoned(place, f"{PREFIX}*", _remove)
    longest = LONGEST_FOLDER - len(PREFIX) - RANDOM_CHARACTERS - 1
    short = [place for place in places if len(str(place)) <= longest]
    if not short:
        raise ExecutorError(
            f"the path of {places[-1]} is too long for Ray's sockets",
            expected=f"at most {longest} characters",
            hint="set TMPDIR to a folder with a shorter path",
        )
    return short[0]


def _remove(folder: Path) -> None:
    """The folder of a cluster, and the processes of Ray that have outlived its supervisor, until
    none of them is left to make files there."""
    end = time.monotonic() + REMOVAL_S
    while (kill_processes_of(folder) or folder.exists()) and time.monotonic() < end:
        rmtree(folder, ignore_errors=True)


class RayWorker:
    """An actor: its release, and one job at a time as a stream of messages."""

    def __init__(self, preload: str) -> None:
        self._job = 0
        if preload:
            import_module(preload)

    def release(self) -> bytes:
        return pickle.dumps(Ready(release()))

    def run(self, job: Job, limits: Limits) -> Iterator[bytes]:
        """Reports as they come, then the end. The job runs in a thread of its own."""
        messages: SimpleQueue[bytes | None] = SimpleQueue()

        def report(value: Any) -> None:
            messages.put(pickle.dumps(Reported(job.key, value, "")))

        def run() -> None:
            messages.put(execute_to_send(job, limits, report))
            messages.put(None)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        assert thread.ident is not None
        self._job = thread.ident
        while (message := messages.get()) is not None:
            yield message

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the job's thread, at its next instruction of Python."""
        thread, what = ctypes.c_ulong(self._job), ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, what)
