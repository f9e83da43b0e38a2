"""No kernel is called complete whose names or calls do not resolve."""

from __future__ import annotations

import pytest

from nki_migrate.engine.processing import Task, process
from nki_migrate.engine.unresolved_names import unbound_names
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

"""
KERNEL = """
@nki.jit
def kernel(x):
    out = nl.ndarray((8, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:8, 0:16])
    nl.store(out[0:8, 0:16], tile)
    return out
"""


def complete(text: str) -> dict[str, bool]:
    result = process(Task("k.py", text.encode(), Request()))
    assert result.error is None
    return {k.name: k.complete for k in result.kernels}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(a):\n    return a + b\n", {"b"}),
        ("b = 1\ndef f(a):\n    return a + b\n", set()),
        ("def f(a):\n    def g():\n        return a + c\n    return g\n", {"c"}),
        ("def f(a):\n    return [b for b in a] + list(range(3))\n", set()),
        ("def set_b():\n    global b\n    b = 1\ndef f():\n    return b\n", set()),
        ("class f:\n    def g(self):\n        return d\n", {"d"}),
        ("def f():\n    x: tensor[3] = 1\n    return x\n", {"tensor"}),
    ],
)
def test_names_that_nothing_binds(text, names):
    assert unbound_names(text)["f"] == names


def test_what_fails_at_import_leaves_every_kernel_incomplete():
    assert complete(HEAD + KERNEL) == {"kernel": True}
    assert complete(HEAD + "measured = nki.benchmark(warmup=3)(print)\n" + KERNEL) == {
        "kernel": False
    }


def test_a_main_block_does_not_run_at_import():
    block = '\nif __name__ == "__main__":\n    nki.benchmark(kernel)(1)\n'

    assert complete(HEAD + KERNEL + block) == {"kernel": True}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("dma_copy(dst=tile, src=tile, speed=3)", "has no parameter `speed`"),
        ("activation(dst=tile, data=tile)", "needs `op`"),
        ("tensor_reduce(dst=tile, op=nl.add)", "needs `data`"),
    ],
)
def test_a_call_of_a_later_version_has_what_the_target_needs(call, message):
    text = HEAD + KERNEL.replace("    nl.store", f"    nisa.{call}\n    nl.store")

    result = process(Task("k.py", text.encode(), Request(source_version="0.1")))

    assert [k.complete for k in result.kernels] == [False]
    assert any(message in f.message for f in result.findings)


ELSEWHERE = HEAD + "from indices import rows\n" + KERNEL.replace("nl.load(x[0:8,", "nl.load(x[i,")


@pytest.mark.parametrize("call", ["rows(8)", "indices.rows(8)"])
def test_an_index_from_a_file_that_is_not_given_may_be_an_index_tensor(call):
    bound = f"\n    i = {call}\n    out ="
    text = ELSEWHERE.replace("import rows\n", "import rows\nimport indices\n")
    result = process(Task("k.py", text.replace("\n    out =", bound).encode(), Request()))

    assert [k.complete for k in result.kernels] == [False]
    assert [f.message for f in result.findings if not f.applied] == [
        "`i` may be an index tensor: `rows` is in a file that was not given; "
        "name that file, too, or give --facts"
    ]


@pytest.mark.parametrize("call", ["min(3, 4)", "math.gcd(4, 6)", "own(8)"])
def test_an_index_from_a_function_in_view_is_a_number(call):
    own = "import math\ndef own(n):\n    return n // 2\n"
    text = (
        HEAD
        + own
        + KERNEL.replace("x[0:8,", "x[i,").replace("    out =", f"    i = {call}\n    out =")
    )

    assert complete(text)["kernel"]
