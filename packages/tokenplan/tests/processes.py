"""Processes of this machine, by their files in /proc, and the clock of a job's limit."""

import re
import time
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace

LISTENS = "0A"
FOREVER_S = 1e9


def descendants(number):
    """Processes below one, by their parents."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = fields(child := int(stat.parent.name))[1]
        except OSError:
            continue
        if int(parent) == number:
            found += [child, *descendants(child)]
    return found


def have_ended(numbers, seconds=120.0):
    """Whether processes end within some seconds."""
    deadline = time.monotonic() + seconds
    while alive := any(map(is_running, numbers)):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return not alive


def is_running(number):
    """Whether a process does anything; one that has ended may wait for its parent."""
    try:
        state, *_, threads = fields(number)[:18]
    except OSError:
        return False
    return state != "Z" or int(threads) > 1  # the first thread may end before others


def cpu_ticks(number):
    """Of user and system that a process has used."""
    return sum(map(int, fields(number)[11:13]))


def fields(number):
    """The fields of `stat` behind the name."""
    return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()


def pass_limits(monkeypatch, begun):
    """Let the limits of the jobs that workers run be over once `begun` is true, which stays so."""
    monotonic = time.monotonic  # jobs of several processes begin at any time
    clock = SimpleNamespace(monotonic=lambda: monotonic() + FOREVER_S * bool(begun()))
    monkeypatch.setattr("tokenplan.executors.workers.time", clock)


def listening(number):
    """The addresses on which a process accepts connections; none where it has ended."""
    process = Path(f"/proc/{number}")
    try:
        sockets = {*filter(None, map(_socket, (process / "fd").iterdir()))}
        tables = [(process / "net" / table).read_text() for table in ("tcp", "tcp6")]
    except OSError:
        return
    for table in tables:
        for line in table.splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and inode in sockets:
                yield _address(local.partition(":")[0])


def _socket(descriptor):
    try:
        found = re.match(r"socket:\[(\d+)\]", str(descriptor.readlink()))
    except OSError:  # closed meanwhile
        return None
    return found and found[1]


def _address(text):
    """Of words in the machine's order, each as hexadecimal digits."""
    words = [bytes.fromhex(text[n : n + 8])[::-1] for n in range(0, len(text), 8)]
    address = ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return f"::ffff:{mapped}" if mapped else str(address)
