"""Skips what needs the compiler where it is not installed."""

import pytest

from tokenplan.tile_ir import compiler


@pytest.fixture(scope="session")
def tileiras():
    reason = compiler.missing("tileiras", "nvdisasm", "cuobjdump")
    if reason:
        pytest.skip(reason)
    return compiler
