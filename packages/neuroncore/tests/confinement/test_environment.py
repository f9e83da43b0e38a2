"""Variables that are withheld are nowhere in the memory of the process that had them."""

from __future__ import annotations

import subprocess
import sys

import pytest

FINDS = """
import ctypes
from pathlib import Path
from neuroncore.confinement.environment import limit_environment

libc = ctypes.CDLL(None)
libc.memmem.restype = ctypes.c_void_p
regions = Path("/proc/self/maps").read_text().splitlines()
limit_environment("test", ["KEPT"])
needle = ctypes.create_string_buffer(b"zz-secret-hunter2")
for region in regions:
    places, rights = region.split()[:2]
    start, end = (int(number, 16) for number in places.split("-"))
    while rights[:2] == "rw" and start < end:
        size = ctypes.c_size_t(end - start)
        length = ctypes.c_size_t(17)
        found = libc.memmem(ctypes.c_void_p(start), size, needle, length)
        if not found:
            break
        before = ctypes.string_at(found - 8, 8)
        if before in (b"A_TOKEN=", b"x" * 8, bytes(8)):
            print(before)
        start = found + 1
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there is code confined")
@pytest.mark.parametrize("others", [{}, {f"OTHER{n}": "y" * n for n in range(300)}])
@pytest.mark.parametrize("size", [0, 300, 3000, 30000])
@pytest.mark.parametrize("is_first", [True, False])
def test_no_copy_of_a_withheld_variable_is_left(size, others, is_first):
    token = {"A_TOKEN": "x" * size + "zz-secret-hunter2"}
    env = token | others if is_first else others | token

    done = subprocess.run(
        [sys.executable, "-c", FINDS], env=env, capture_output=True, text=True, check=True
    )

    assert done.stdout == ""
