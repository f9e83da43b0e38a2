"""The address of a Ray cluster: HOST:PORT of a head that answers, or a local one."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator

from tokenplan.executors.protocol import AddressError

LOCAL = "local"
ANSWER_S = 5.0
"""How long the head of a cluster may take to accept a connection, and to answer."""
_ADDRESS = re.compile(r"(?:\[([^\[\]]*:[^\[\]]*)\]|([^\s:/\[\]]+)):([0-9]+)")


def parse_address(address: str) -> tuple[str, int] | None:
    """Host and port, None for a local cluster. Raises AddressError where no head of Ray answers."""
    if address == LOCAL:
        return None
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise AddressError(
            f"{address!r} is not an address", expected=f"HOST:PORT, [IPV6]:PORT, or {LOCAL!r}"
        )
    host, port = found[1] or found[2], found[3]
    if not answers((host, int(port)), as_ray=True):
        raise AddressError(
            f"{address} does not answer as Ray does", expected="the head of a Ray cluster",
            hint="start one with `ray start --head`, or use --ray local",
        )  # fmt: skip
    return host, int(port)


def address_text(head: tuple[str, int]) -> str:
    """The address as Ray reads it."""
    host, port = head
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def answers(head: tuple[str, int], as_ray: bool = False) -> bool:
    """Whether a connection is accepted; `as_ray`: and a request of Ray answered by gRPC, also by a
    head that requires a token.
    """
    try:
        with socket.create_connection(head, timeout=ANSWER_S) as opened:
            if as_ray and os.environ.get("RAY_USE_TLS", "0") == "0":
                opened.sendall(_REQUEST)
                return _is_rays(opened)
    except (OSError, OverflowError, UnicodeError):
        return False
    return True


def _is_rays(opened: socket.socket) -> bool:
    """Whether the answer has the status 200 and is gRPC's for a method that is known."""
    fields = [content for kind, stream, content in _frames(opened) if (kind, stream) == _ANSWER]
    before, grpc, _ = b"".join(fields[:1]).partition(_GRPC)
    status = fields[-1] if grpc else b""
    return _OK in before and _STATUS in status and _UNKNOWN_METHOD not in status


def _frames(opened: socket.socket) -> Iterator[tuple[int, int, bytes]]:
    """Kind, stream and content of each frame, to the end of the answer (RFC 9113). Raises OSError
    where there is another protocol, or no end within ANSWER_S.
    """
    end, is_first = time.monotonic() + ANSWER_S, True
    while time.monotonic() < end:
        head = _read(opened, _HEAD_BYTES, end)
        size, kind, flags, stream = (int.from_bytes(head[a:b], "big") for a, b in _HEAD_FIELDS)
        if size > _MOST_BYTES or (is_first and (kind, flags, stream) != _SETTINGS):
            raise ConnectionError
        yield kind, stream, _read(opened, size, end)
        if stream and flags & _ENDS:
            return
        is_first = False
    raise TimeoutError


def _read(opened: socket.socket, size: int, end: float) -> bytes:
    found = b""
    while len(found) < size:
        opened.settimeout(max(0.0, end - time.monotonic()))
        part = opened.recv(size - len(found))
        if not part:
            raise ConnectionError
        found += part
    return found


_HEAD_BYTES, _HEAD_FIELDS = 9, ((0, 3), (3, 4), (4, 5), (5, 9))
_MOST_BYTES = 1 << 14
"""Of a frame, unless a client's settings allow more."""
_SETTINGS, _ANSWER, _ENDS = (4, 0, 0), (1, 1), 1
_OK, _GRPC, _STATUS = b"\x88", b"application/grpc", b"grpc-status"
_UNKNOWN_METHOD = _STATUS + b"\x0212"
"""Fields as servers of Ray encode them, as literals (RFC 7541); others may code them."""
_FIELDS = (
    b"\x83\x86\x04\x26/ray.rpc.NodeInfoGcsService/CheckAlive\x01\x03ray"
    b"\x0f\x10\x10application/grpc\x00\x02te\x08trailers"
)
"""POST, http, and as literals the path, authority, content type and te (RFC 7541)."""
_REQUEST = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
    + bytes([0, 0, len(_FIELDS), 1, 4, 0, 0, 0, 1]) + _FIELDS
    + bytes([0, 0, 5, 0, 1, 0, 0, 0, 1]) + bytes(5)
)  # fmt: skip
"""The preface, a frame of no settings, header fields and an empty message (RFC 9113)."""
