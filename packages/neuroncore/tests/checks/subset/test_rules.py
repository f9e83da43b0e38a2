"""Every rule of the table: what it rejects, and the nearest thing that is accepted."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from neuroncore.checks.subset import RULES, check_script, check_source
from neuroncore.options import Options

HEAD = """
import enum, functools, math
from dataclasses import dataclass
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
"""


def kernel(body: str, parameters: str = "x") -> str:
    """A file with one kernel of this body."""
    return f"{HEAD}\n@nki.jit\ndef kernel({parameters}):\n{indent(dedent(body), '    ')}\n"


def reaching(definition: str, use: str) -> str:
    """A file with a definition that a kernel uses."""
    return HEAD + dedent(definition) + f"\n@nki.jit\ndef kernel(x):\n    {use}\n"


def found(source: str, nki: str = "0.3", frontend=None) -> list[tuple[str | None, str]]:
    return [(f.code, f.severity) for f in check_source(source, "kernel.py", nki, frontend)]


DYNAMIC = "r = nisa.register_alloc(4)\nfor i in nl.dynamic_range(0, r, 1):\n    "
OLD_HEAD = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n"
OLD_HEAD += "import neuronxcc.nki.typing as nt\n\n@nki.jit\n"


def old(text: str) -> str:
    return OLD_HEAD + dedent(text)


# rule → (rejected, accepted): whole files
EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "nested-definition": (
        [
            kernel("def inner():\n    return 1\ninner()"),
            kernel("class Inner(nl.NKIObject):\n    pass"),
            kernel("f = lambda i: i"),
        ],
        [reaching("def inner(i):\n    return i", "inner(1)")],
    ),
    "nested-body": (
        [
            kernel("def body(i):\n    pass\nnl.fori_loop(0, 4, body)"),
            kernel("def body(r):\n    return r\nnl.while_loop(x, body_fun=body)"),
        ],
        [reaching("def body(i):\n    pass", "nl.fori_loop(0, 4, body)")],
    ),
    "dynamic-range": (
        [kernel("for i in nl.dynamic_range(4):\n    pass"), kernel(DYNAMIC + "pass")],
        [kernel("for i in range(4):\n    pass")],
    ),
    "star-parameter": (
        [kernel("pass", "*tensors"), reaching("def f(*xs):\n    pass", "f(x)")],
        [kernel("pass", "a, b")],
    ),
    "double-star-parameter": ([kernel("pass", "**options")], [kernel("pass", "a, b=1")]),
    "keyword-only": ([kernel("pass", "x, *, scale=1.0")], [kernel("pass", "x, scale=1.0")]),
    "decorator": (
        [
            reaching("@functools.cache\ndef f(i):\n    return i", "f(1)"),
            f"{HEAD}\n@nki.jit\n@functools.cache\ndef kernel(x):\n    pass\n",
        ],
        [
            f"{HEAD}\n@nki.jit(mode='trace')\ndef kernel(x):\n    pass\n",
            reaching(
                """
                @dataclass
                class Tile(nl.NKIObject):
                    size: int = 4
                    @staticmethod
                    def of(size):
                        return Tile(size)
                """,
                "Tile.of(2)",
            ),
        ],
    ),
    "nested-kernel": (
        [reaching("@nki.jit\ndef inner(x):\n    pass", "inner(x)")],
        [
            reaching("def inner(x):\n    pass", "inner(x)"),
            reaching("@nki.jit\ndef inner(x):\n    pass", "pass"),
        ],
    ),
    "class-base": (
        [
            reaching("class Tile:\n    pass", "Tile()"),
            reaching("class Tile(nl.NKIObject, enum.Enum):\n    pass", "Tile()"),
            reaching("class Base(nl.NKIObject):\n    pass\nclass Tile(Base):\n    pass", "Tile()"),
            reaching("class Tile(nl.NKIObject, metaclass=type):\n    pass", "Tile()"),
        ],
        [
            reaching("class Tile(nl.NKIObject):\n    size: int", "Tile(4)"),
            reaching("class Side(enum.Enum):\n    left = 0", "Side.left"),
        ],
    ),
    "class-body": (
        [reaching("class Tile(nl.NKIObject):\n    if True:\n        size: int", "Tile(4)")],
        [reaching("class Tile(nl.NKIObject):\n    'A tile.'\n    size: int = 4", "Tile()")],
    ),
    "super-or-property": (
        [
            reaching("class T(nl.NKIObject):\n    @property\n    def a(s):\n        pass", "T()"),
            reaching("class T(nl.NKIObject):\n    def a(self):\n        super().a()", "T()"),
        ],
        [reaching("class T(nl.NKIObject):\n    def a(self):\n        return 1", "T().a()")],
    ),
    "statement": (
        [
            kernel("try:\n    pass\nfinally:\n    pass"),
            kernel("raise"),
            kernel("a = 1\ndel a"),
            kernel("global a"),
            kernel("import math"),
            kernel("from math import pi"),
            kernel("match x:\n    case 1:\n        pass"),
            reaching("async def f():\n    pass", "f()"),
        ],
        [kernel("assert x, 'no x'\nif x:\n    pass\nelse:\n    return x")],
    ),
    "loop-else": (
        [
            kernel("for i in range(4):\n    pass\nelse:\n    pass"),
            kernel("while x:\n    break\nelse:\n    pass"),
        ],
        [kernel("for i in range(4):\n    if i == 2:\n        break\n    continue")],
    ),
    "loop-target": (
        [
            kernel("for a, b in [(1, 2)]:\n    pass"),
            kernel("t = [0]\nfor t[0] in (1, 2):\n    pass"),
        ],
        [kernel("for pair in [(1, 2)]:\n    a, b = pair")],
    ),
    "with": (
        [
            kernel("with x:\n    pass"),
            kernel("with nl.no_reorder() as n:\n    pass"),
            kernel("with nl.no_reorder(1):\n    pass"),
        ],
        [kernel("with nl.no_reorder():\n    pass")],
    ),
    "dynamic-loop-exit": (
        [kernel(DYNAMIC + word) for word in ("break", "continue", "return")]
        + [kernel(DYNAMIC + "for j in range(2):\n        return")],
        [
            kernel(DYNAMIC + "for j in range(2):\n        break"),
            kernel("for i in range(4):\n    break"),
        ],
    ),
    "dynamic-index-write": (
        [kernel(DYNAMIC + "i = 2"), kernel(DYNAMIC + "i += 1")],
        [kernel("for i in range(4):\n    i = 2"), kernel(DYNAMIC + "j = i")],
    ),
    "expression": (
        [
            kernel("a = [i for i in (1, 2)]"),
            kernel("a = [i for i in range(2)]"),
            kernel("a = {i for i in (1, 2)}"),
            kernel("a = {'i': i for i in (1, 2)}"),
            kernel("a = tuple(i for i in (1, 2))"),
            kernel("a = {1, 2}"),
            kernel("b = (a := 1)"),
            kernel("yield x"),
            kernel("yield from x"),
        ],
        [kernel("a = []\nfor i in (1, 2):\n    a.append(i if i else -i)")],
    ),
    "starred": (
        [kernel("a = [*x, 1]"), kernel("a, *b = x")],
        [kernel("a = [1, 2] + [3]\n(b, c), d = (1, 2), 3")],
    ),
    "call-unpacking": (
        [
            reaching("def f(a, b):\n    pass", "f(*x)"),
            reaching("def f(a, b):\n    pass", "f(**x)"),
        ],
        [reaching("def f(a, b):\n    pass", "f(1, b=2)")],
    ),
    "matmul-operator": (
        [kernel("y = x @ x"), kernel("x @= x")],
        [kernel("y = 2 * 3 // 4 % 5 ** 6 << 1 | 7 & 8 ^ ~9")],
    ),
    "constant": (
        [kernel("a = 1j"), kernel("a = b'x'")],
        [kernel("a = None, True, 1, 1.5, 'x', ...")],
    ),
    "dict-key": (
        [kernel("a = {1: 2}"), kernel("a = {x: 2}"), kernel("a = {**x}")],
        [kernel("a = {'one': 1}")],
    ),
    "format-spec": (
        [kernel("print(f'{x:.3f}')")],
        [kernel("print(f'{x} {x!r}')")],
    ),
    "identity": (
        [kernel("if x is None:\n    pass"), kernel("y = x is not None")],
        [kernel("if x == None:\n    pass")],
    ),
    "is-not-none": ([kernel("y = x is True")], [kernel("y = x is None")]),
    "membership": (
        [kernel("a = {'one': 1}\nb = 'one' in a"), kernel("b = x not in {'one': 1}")],
        [kernel("a = 1 in [1, 2] and 'a' in 'abc' and x not in (1, 2)")],
    ),
    "list-argument": (
        [
            kernel("pass", "sizes: list[int]"),
            kernel("pass") + "\nkernel([1, 2])\n",
            kernel("pass") + "\nkernel[2](x=[1, 2])\n",
        ],
        [kernel("pass", "sizes: tuple[int, ...]") + "\nkernel((1, 2))\n"],
    ),
    "numpy-dtype": (
        [
            kernel("t = nl.ndarray((4, 4), dtype=np.float32)"),
            kernel("t = nl.ndarray((4, 4), np.int8)"),
            kernel("pass") + "\nkernel(dtype=np.float32)\n",
        ],
        [kernel("t = nl.ndarray((4, 4), dtype=nl.float32)") + "\nkernel(np.zeros(3, np.int8))\n"],
    ),
    "wide-int": (
        [
            reaching("BIG = 2**31", "print(BIG)"),
            reaching("BIG = -(1 << 31) - 1", "print(BIG)"),
            reaching("BIG = 3_000_000_000", "print(BIG)"),
            kernel("a = 5000000000"),
            kernel("nisa.memset(x, value=5000000000)"),
            kernel("a = x + -(2**31 + 1)"),
            kernel("a = [1 << 31]"),
        ],
        [
            kernel("a = -(2**31), 2**31 - 1, -2147483648, True, 3e9"),
            kernel("a = 2**40 - 2**40"),
            reaching("BIG = 2**31 - 1", "print(BIG)"),
            reaching("BIG = -(2**31)", "print(BIG)"),
            reaching("UNUSED = 2**40", "print(x)"),
        ],
    ),
    "string-operation": (
        [kernel("a = 'abc'\nb = a[0]"), kernel("a = 'abc'.upper()"), kernel("a = f'{x}'.strip()")],
        [kernel("a = 'abc'\nb = a == 'abc'")],
    ),
    "builtin": (
        [
            kernel(f"y = {name}(x)")
            for name in (
                *("enumerate", "zip", "sum", "any", "all", "sorted", "reversed", "map", "filter"),
                *("set", "round", "getattr", "hasattr"),
            )
        ],
        [
            kernel(f"y = {name}(x)")
            for name in (
                *("abs", "bool", "dict", "divmod", "float", "int", "isinstance", "len", "list"),
                *("max", "min", "print", "slice", "str", "tuple", "type"),
            )
        ]
        + [reaching("def sum(a):\n    return a", "sum(1)"), kernel("sum = 1\ny = sum")],
    ),
    "range-value": (
        [kernel("r = range(4)"), kernel("r = list(range(4))")],
        [kernel("for i in range(4):\n    pass")],
    ),
    "math-function": (
        [kernel("y = math.exp(1.0)"), kernel("y = math.tau")],
        [kernel(f"y = math.{f}(4)") for f in ("ceil", "floor", "log2", "log10", "sqrt")]
        + [kernel("y = math.gcd(4, 2) + math.pow(2, 3)\nz = math.pi, math.e, math.inf, math.nan")],
    ),
    "min-max": (
        [kernel("y = min(1, 2, 3)"), kernel("y = max(1, 2, 3)")],
        [kernel("y = min(1, 2), max((1, 2, 3))")],
    ),
    "method": (
        [
            kernel("a = [1]\na.sort()"),
            kernel("a = [1]\na.insert(0, 1)"),
            kernel("a = [1]\na.pop(0)"),
            kernel("a = {'b': 1}\na.update(x)"),
        ],
        [
            kernel("a = [1]\na.append(2)\na.extend([3])\na.pop()\na.reverse()\na.clear()"),
            kernel("a = {'b': 1}\nc = a.get('b'), a.keys(), a.values(), a.items()"),
            kernel("x.sort()"),
        ],
    ),
    "method-differs": (
        [kernel(f"a = [1]\nb = a.{name}(1)") for name in ("count", "index", "remove")],
        [kernel("b = x.count(1)")],
    ),
    "old-namespace": (
        ["import neuronxcc.nki as nki\n\n@nki.jit\ndef kernel(x):\n    return nki.language.exp\n"],
        ["import nki\n\n@nki.jit\ndef kernel(x):\n    return nki.language.exp\n"],
    ),
    "mask": (
        [kernel("nisa.tensor_copy(x, x, mask=x)"), kernel("y = nl.load(x, mask=x)")],
        [
            kernel("nisa.tensor_copy(x[0 : min(4, 5)], x)"),
            reaching("def f(mask):\n    pass", "f(mask=x)"),
        ],
    ),
    "tensor-arithmetic": (
        [
            kernel("t = nl.ndarray((4, 4), nl.float32)\nu = t + 1"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nt *= 2"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nu = -t[0:2]"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nt = t + 1"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nfor i in range(4):\n    t = i * t"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nv = t > 0"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nv = 0 <= t[0:2] <= 1"),
            kernel("n = x.shape[0]\nif x < n:\n    pass"),
            kernel("n = x.shape[0]\ny = x * 2"),
            kernel("y = x * 2", "x: nl.ndarray"),
        ],
        [
            kernel("n = x.shape[0] * 2"),
            kernel("n = x * 2"),
            kernel("n = x > 2"),
            kernel("n = x.shape[0] < 4"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nif t == None or t != x:\n    pass"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nt = t.shape[0]\nu = t + 1"),
            kernel("t = [nl.ndarray((4, 4), nl.float32)] * 2"),
        ],
    ),
    "tensor-assignment": (
        [
            kernel("t = nl.ndarray((4, 4), nl.float32)\nt[0:2, :] = x"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nu = t.reshape((2, 8))\nu[...] = x"),
        ],
        [
            kernel("t = [1, 2]\nt[0] = x"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\nnisa.tensor_copy(t[0:2, :], x)"),
        ],
    ),
    "register-branch": (
        [
            kernel("r = nisa.register_alloc(4)\nif r:\n    pass"),
            kernel("r = nisa.VirtualRegister()\nassert r"),
            kernel("r = nisa.register_alloc(4)\nif not r > 2:\n    pass"),
            kernel("r = nisa.register_alloc(4)\ny = 1 if r else 2"),
            kernel("r = nisa.register_alloc(4)\ny = int(r)"),
            kernel("r = nisa.register_alloc(4)\nfor i in range(r):\n    pass"),
            kernel("r = nisa.register_alloc(4)\nn = min(r, 4)"),
            kernel("r = nisa.scalar_load(x)\nif r + 1 < 4:\n    pass"),
            kernel("r = nisa.scalar_load(x)\nt = nl.ndarray((4, 4), nl.float32)\nu = t[0:r, 1]"),
            kernel("r = nisa.scalar_load(x)\nt = [1, 2]\nu = t[r]"),
            reaching("def body(i):\n    if i == 0:\n        pass", "nl.fori_loop(0, 4, body)"),
        ],
        [
            kernel("r = nisa.register_alloc(4)\nr2 = r\nn = 4\nif n:\n    n = int(n)"),
            reaching("def body(i, n=2):\n    if n == 2:\n        pass", "body(1)"),
        ],
    ),
    "register-while": (
        [kernel("r = nisa.register_alloc(4)\nwhile r:\n    pass")],
        [kernel("n = 4\nwhile n:\n    n -= 1")],
    ),
    "nested-dynamic-loop": (
        [
            kernel(DYNAMIC + "for j in nl.dynamic_range(4):\n        pass"),
            kernel(DYNAMIC + "for j in range(4):\n        for k in nl.dynamic_range(r):\n"
                   "            pass"),
            kernel(DYNAMIC + "while r:\n        pass"),
            kernel("r = nisa.register_alloc(4)\nwhile r:\n    for i in nl.dynamic_range(4):\n"
                   "        pass"),
        ],
        [
            kernel(DYNAMIC + "for j in range(4):\n        pass\nfor j in nl.dynamic_range(4):\n"
                   "    pass"),
            kernel("for i in range(4):\n    for j in nl.dynamic_range(4):\n        pass"),
        ],
    ),
    "body-tensor": (
        [
            kernel(DYNAMIC + "t = nl.ndarray((4, 4), nl.float32)\nnisa.memset(t, 0)"),
            kernel(DYNAMIC + "t = nl.ndarray((4, 4), nl.float32)\n    u = t[0:2]\n"
                   "nisa.memset(u, 0)"),
            kernel(DYNAMIC + "t = nl.ndarray((4, 4), nl.float32)\n"
                   "for j in nl.dynamic_range(4):\n    nisa.memset(t, 0)"),
        ],
        [
            kernel(DYNAMIC + "t = nl.ndarray((4, 4), nl.float32)\n    for j in range(2):\n"
                   "        nisa.memset(t, 0)"),
            kernel("t = nl.ndarray((4, 4), nl.float32)\n" + DYNAMIC + "nisa.memset(t, 0)\n"
                   "nisa.memset(t, 1)"),
            kernel("for i in range(4):\n    t = nl.ndarray((4, 4), nl.float32)\n"
                   "nisa.memset(t, 0)"),
        ],
    ),
    "index-condition": (
        [
            old("def k(x):\n  for i in nl.affine_range(4):\n    if i == 0:\n      pass\n"),
            old("def k(x):\n  i = nl.arange(4)[:, None]\n  y = 1 if i + 1 > 2 else 3\n"),
            old("def k(x):\n  for i in nl.affine_range(4):\n    while i * 2 > 3:\n      pass\n"),
            old("def k(x):\n  for i in nl.affine_range(4):\n    y = i == 3\n    if y: pass\n"),
            old("def k(x):\n  for i in nl.affine_range(4):\n    for j in range(i):\n      pass\n"),
            old("def k(x):\n  for i in nl.affine_range(4):\n    n = min(i + 1, 2)\n"),
            old("def k(x):\n  for i in nl.affine_range(4):\n    n = nl.static_range(i)\n"),
        ],
        [
            old(
                "def k(x):\n  for i in nl.affine_range(4):\n    pass\n"
                "  for i in nl.static_range(4):\n    if i > 1:\n      n = max(i, 2)\n"
            ),
            old("def k(x):\n  for i in nl.affine_range(4):\n    nl.load(x, mask=i < 8)\n"),
            old("def k(x):\n  for i in nl.static_range(4):\n    if i == 0:\n      pass\n"),
            old("def k(x):\n  for i in nl.affine_range(4):\n    if x.shape[0] > 2:\n      pass\n"),
        ],
    ),
    "sequential-condition": (
        [
            old("def k(x):\n  for i in nl.sequential_range(4):\n    if i == 0:\n      pass\n"),
            old("def k(x):\n  for i in range(4):\n    y = 1 if i * 2 > 3 else 2\n"),
        ],
        [old("def k(x):\n  for i in nl.static_range(4):\n    if i == 0:\n      pass\n")],
    ),
    "tensor-scope": (
        [
            old("def k(x):\n  for i in nl.affine_range(4):\n    t = nl.load(x)\n  return t\n"),
        ],
        [
            old("def k(x):\n  t = nl.load(x)\n  for i in range(4):\n    t = nl.exp(t)\n  t = t\n"),
            old("def k(x):\n  for i in range(4):\n    t = nl.load(x)\n    u = nl.exp(t)\n"),
            old("def k(x, b):\n  if b:\n    t = nl.load(x)\n  return t\n"),
            old("def k(x):\n  for i in nl.static_range(4):\n    t = nl.load(x)\n  return t\n"),
            old("def k(x):\n  for i in (1, 2):\n    t = nl.load(x)\n  return t\n"),
        ],
    ),
    "parameter-write": (
        [old("def k(x):\n  nl.store(x[0:4], 1.0)\n  return x\n")],
        [
            old("def k(x: nt.mutable_tensor):\n  nl.store(x[0:4], 1.0)\n  return x\n"),
            old("def k(x, out):\n  nl.store(out, nl.load(x))\n"),
        ],
    ),
    "nested-output": (
        [old("def k(x):\n  while x:\n    nl.zeros((4, 4), nl.int8, buffer=nl.shared_hbm)")],
        [old("def k(x):\n  if x:\n    nl.zeros((4, 4), nl.int8, buffer=nl.shared_hbm)"),
         old("def k(x):\n  return nl.zeros((4, 4), nl.int8, buffer=nl.shared_hbm)\n")],
    ),
    "syntax": ([kernel("a = = 1")], [kernel("a = 1")]),
}  # fmt: skip

VERSION = {
    "is-not-none": "0.2", "dynamic-index-write": "0.4", "register-while": "0.6",
    "index-condition": "0.1", "sequential-condition": "0.1", "tensor-scope": "0.1",
    "parameter-write": "0.1", "nested-output": "0.1", "nested-body": "0.6", "dynamic-range": "0.7",
}  # fmt: skip
"""The version whose own frontend a rule is tried with; the others are of 0.3."""


def cases(which: int) -> list:
    return [
        pytest.param(code, source, id=f"{code}-{number}")
        for code, examples in EXAMPLES.items()
        for number, source in enumerate(examples[which])
    ]


def test_every_rule_has_examples_of_both_kinds():
    assert EXAMPLES.keys() == RULES.keys()
    assert all(rejected and accepted for rejected, accepted in EXAMPLES.values())


@pytest.mark.parametrize(("code", "source"), cases(0))
def test_a_rule_finds_what_it_is_for_and_nothing_else_is_found(code, source):
    assert {found_code for found_code, _ in found(source, VERSION.get(code, "0.3"))} == {code}


@pytest.mark.parametrize(("code", "source"), cases(1))
def test_what_is_accepted_has_no_finding(code, source):
    assert found(source, VERSION.get(code, "0.3")) == []


BETA1_ONLY = {
    "index-condition",
    "sequential-condition",
    "tensor-scope",
    "parameter-write",
    "nested-output",
}
STILL_FAIL = {
    *("old-namespace", "mask", "tensor-arithmetic", "tensor-assignment", "register-branch"),
    *("register-while", "dynamic-index-write", "syntax", "body-tensor"),
}
ACCEPTED = {
    *("nested-kernel", "is-not-none", "method-differs", "nested-dynamic-loop", "nested-body"),
    "dynamic-range",
}
LATER = sorted(RULES.keys() - BETA1_ONLY)


@pytest.mark.parametrize("code", LATER)
def test_the_tracer_of_0_6_warns_of_what_it_runs_and_rejects_what_still_fails(code):
    severity = "error" if code in STILL_FAIL else "warning"

    expected = set() if code in ACCEPTED else {severity}

    assert {s for c, s in found(EXAMPLES[code][0][0], "0.6", "tracer") if c == code} == expected


KEPT_IN_0_7 = {
    *("old-namespace", "mask", "tensor-arithmetic", "tensor-assignment", "register-branch"),
    *("register-while", "syntax", "dynamic-range", "numpy-dtype"),
}


@pytest.mark.parametrize(("code", "source"), [c for c in cases(0) if c.values[0] in LATER])
def test_0_7_runs_python_and_rejects_values_of_the_device_in_it(code, source):
    kept = {code} & KEPT_IN_0_7 | ({"dynamic-range"} if "dynamic_range" in source else set())

    assert kept <= {c for c, _ in found(source, "0.7")} <= kept | KEPT_IN_0_7


CHANGED_BEFORE_0_7 = {
    *("nested-dynamic-loop", "dynamic-index-write", "identity", "is-not-none", "keyword-only"),
    *("list-argument", "nested-kernel", "register-while", "body-tensor", "register-branch"),
}


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.4", "0.5", "0.6"])
@pytest.mark.parametrize("code", sorted(set(LATER) - CHANGED_BEFORE_0_7 - {"dynamic-range"}))
def test_versions_up_to_0_6_reject_what_their_parser_does_not_read(code, version):
    source = EXAMPLES[code][0][0]
    verdict = RULES[code].parser

    assert (code, verdict) in found(source, version) == found(source, version, "parser")


@pytest.mark.parametrize("code", sorted(RULES.keys() - {"syntax"} - BETA1_ONLY))
def test_nothing_of_the_later_languages_is_asked_of_0_1(code):
    assert all(found(source, "0.1") == [] for source in EXAMPLES[code][0])


DISPUTED = {
    *("identity", "keyword-only", "double-star-parameter", "register-branch", "method-differs"),
    *("nested-kernel", "body-tensor"),
}


@pytest.mark.parametrize("code", sorted(DISPUTED))
def test_where_documents_disagree_the_parser_frontend_is_warned_about(code):
    assert {s for _, s in found(EXAMPLES[code][0][0], "0.3")} == {"warning"}


@pytest.mark.parametrize("code", ["identity", "keyword-only", "list-argument"])
def test_what_0_3_forbids_first_is_accepted_in_0_2(code):
    assert found(EXAMPLES[code][0][0], "0.2") == []


def test_a_kernel_that_calls_a_kernel_is_an_error_in_0_2():
    assert found(EXAMPLES["nested-kernel"][0][0], "0.2") == [("nested-kernel", "error")]


def test_a_condition_loop_on_a_register_is_deprecated_in_0_6_and_removed_in_0_7():
    (source,), _ = EXAMPLES["register-while"]

    said = {version: found(source, version) for version in ("0.3", "0.5", "0.6", "0.7")}

    assert said["0.3"] == said["0.5"] == []
    assert said["0.6"] == [("register-while", "warning")]
    assert said["0.7"] == [("register-while", "error")]
    assert found(source, "0.6", "tracer") == [("register-while", "error")]


def test_dynamic_loops_nest_from_0_6_on():
    source = EXAMPLES["nested-dynamic-loop"][0][0]

    said = {version: found(source, version) for version in ("0.2", "0.3", "0.4", "0.5", "0.6")}

    assert all(said[v] == [("nested-dynamic-loop", "error")] for v in ("0.2", "0.3", "0.4", "0.5"))
    assert said["0.6"] == found(source, "0.6", "parser") == []


def test_what_a_body_makes_ends_with_it_from_0_6_on_and_before_no_document_says_so():
    source = EXAMPLES["body-tensor"][0][0]

    said = {version: found(source, version) for version in ("0.2", "0.5", "0.6")}

    assert said["0.2"] == said["0.5"] == [("body-tensor", "warning")]
    assert said["0.6"] == [("body-tensor", "error")]


def test_a_loop_that_a_register_ends_keeps_its_tensors_too():
    made = "r = nisa.register_alloc(4)\nwhile r:\n    t = nl.ndarray((4, 4), nl.float32)\n"

    assert found(kernel(made + "nisa.memset(t, 0)")) == [("body-tensor", "warning")]


def test_the_index_of_a_dynamic_loop_is_a_register_from_0_4():
    source = kernel(DYNAMIC + "if i == 0:\n        pass")

    assert found(source, "0.3") == []
    assert found(source, "0.4") == [("register-branch", "warning")]
    assert found(source, "0.4", "tracer") == [("register-branch", "error")]


def test_either_frontend_can_be_selected_from_0_4_on():
    source = EXAMPLES["nested-definition"][0][0]

    assert (
        found(source, "0.6") == found(source, "0.7", "parser") == [("nested-definition", "error")]
    )
    assert found(source, "0.6", "tracer") == [("nested-definition", "warning")]
    assert found(source, "0.7") == []


def test_an_option_selects_the_frontend_of_versions_that_have_it(tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text(EXAMPLES["nested-definition"][0][0])

    said = {
        (nki, frontend): [
            f.severity for f in check_script(file, nki, options=Options(frontend=frontend))
        ]
        for nki in ("0.3", "0.6", "0.7")
        for frontend in ("version", "parser", "tracer")
    }

    assert said["0.3", "tracer"] == said["0.6", "version"] == said["0.7", "parser"] == ["error"]
    assert said["0.6", "tracer"] == ["warning"]
    assert said["0.7", "version"] == []


def test_the_variable_of_a_nested_body_is_a_value_of_the_device():
    body = "def body(i):\n    n = i * 2\n    if n > 4:\n        pass\nnl.fori_loop(0, 4, body)"

    assert found(kernel(body), "0.7") == [("register-branch", "error")]
