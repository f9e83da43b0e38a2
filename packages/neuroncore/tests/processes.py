"""Processes of this machine, by their files in /proc."""

import re
import time
from ipaddress import ip_address
from pathlib import Path

LISTENS = "0A"


def descendants(number):
    """Processes below one, by their parents."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == number:
            child = int(stat.parent.name)
            found += [child, *descendants(child)]
    return found


def have_ended(numbers, seconds=10.0):
    """Whether processes end within some seconds."""
    deadline = time.monotonic() + seconds
    while alive := any(Path(f"/proc/{number}").exists() for number in numbers):
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    return not alive


def listening(number):
    """The addresses on which a process accepts connections; none where it has ended."""
    process = Path(f"/proc/{number}")
    try:
        links = [str(file.readlink()) for file in (process / "fd").iterdir()]
        tables = [(process / "net" / table).read_text() for table in ("tcp", "tcp6")]
    except FileNotFoundError:
        return
    sockets = {found[1] for link in links if (found := re.match(r"socket:\[(\d+)\]", link))}
    for table in tables:
        for line in table.splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == LISTENS and inode in sockets:
                yield _address(local.partition(":")[0])


def _address(text):
    """Of words in the machine's order, each as hexadecimal digits."""
    words = [bytes.fromhex(text[n : n + 8])[::-1] for n in range(0, len(text), 8)]
    address = ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return f"::ffff:{mapped}" if mapped else str(address)
