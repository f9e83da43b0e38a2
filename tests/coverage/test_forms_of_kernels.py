"""Forms that public kernels of 0.1 to 0.6 are written in, each in its smallest kernel.

Each runs and gives the expected values: nothing in it changes a value or a limit. What documents
reject is in the tests of the languages and in test_error_texts.
"""

from __future__ import annotations

import linecache
from textwrap import dedent, indent

import numpy as np
import pytest

from nki_runtime import use

X = np.arange(32, dtype=np.float32).reshape(4, 8)
PARSED = "0.2 0.3 0.4 0.5 0.6"
ALL = f"{PARSED} 0.7"

_NEW = """
import nki
import nki.isa as nisa
import nki.language as nl


def load(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
_OLD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


def load(x):
    return nl.load(x)


def store(tile):
    out = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out
"""
_HEAD = """
from dataclasses import asdict, astuple, dataclass, field
import copy, functools, typing
import numpy as np
X = np.arange(32, dtype=np.float32).reshape(4, 8)
"""

# name: (versions, text; the last expression is what is returned, what is expected)
FORMS: dict[str, tuple[str, str, np.ndarray]] = {}


def form(name: str, versions: str, expected: np.ndarray, text: str) -> None:
    FORMS[name] = versions, dedent(text), expected


def in_kernel(name: str, versions: str, expected: np.ndarray, body: str, before: str = "") -> None:
    """A form inside of a kernel of x whose tile is `t`; the tile `r`, or `t`, is returned."""
    text = f"{dedent(before)}\n@nki.jit\ndef k(x):\n    t = r = load(x)\n"
    form(
        name, versions, expected, f"{text}{indent(dedent(body), '    ')}\n    return store(r)\nk(X)"
    )


# -- nki.jit --------------------------------------------------------------------------------------

in_kernel("keywords of jit", ALL, X, "pass", before="""
    jit = nki.jit(debug_kernel=True, show_compiler_tb=True, experimental_flags="a", opt="-O1")
    nki = type("nki", (), {"jit": staticmethod(jit)})
""")  # fmt: skip
form("mode by position", "0.1 0.2 0.3", X, "nki.jit(lambda x: store(load(x)), 'trace')(X)")
form("func by name", "0.1 0.2 0.3", X, "nki.jit(func=lambda x: store(load(x)))(X)")
form("fn by name", "0.4 0.5 0.6 0.7", X, "nki.jit(fn=lambda x: store(load(x)))(X)")
form("a partial function", ALL, X + 3, """
    def body(x, n):
        t = load(x)
        nisa.tensor_scalar(t, t, nl.add, float(n))
        return store(t)
    nki.jit(functools.partial(body, n=3))(X)
""")  # fmt: skip
form("a target", "0.1 0.2", X, "nki.jit(platform_target='trn1')(lambda x: store(load(x)))(X)")
form("func of a kernel", f"0.1 {ALL}", X, """
    k = nki.jit(lambda x: store(load(x)))
    nki.jit(lambda x: k.func(x))(X)
""")  # fmt: skip
form("a kernel in a kernel", f"0.1 {ALL}", X, """
    inner = nki.jit(lambda t: t)
    nki.jit(lambda x: store(inner(load(x))))(X)
""")  # fmt: skip
form("annotations of 0.1", "0.2 0.3 0.4", X, """
    import neuronxcc.nki.typing as nt
    from neuronxcc.nki.typing import tensor
    @nki.jit
    def k(x: nt.tensor[4, 8], y: typing.Optional[nt.mutable_tensor] = None) -> tensor[4, 8]:
        return store(load(x))
    k(X)
""")  # fmt: skip

# -- objects and values ---------------------------------------------------------------------------

for _name, _decorator in (("plain", ""), ("dataclass", "@dataclass")):
    in_kernel(
        f"fields without annotation, {_name}",
        PARSED,
        X[:2],
        "r = load(x[0:C(rows=2).rows])",
        before=f"{_decorator}\nclass C(nl.NKIObject):\n    rows = None\n    columns = 8\n",
    )
    in_kernel(f"left out, {_name}", PARSED, X[:3], "r = load(x[0 : C(other=8, rows=3).rows])",
              before=f"{_decorator}\nclass C(nl.NKIObject):\n    rows: int\n    columns: int\n"
                     "    other: int\n")  # fmt: skip
in_kernel("a constructor that calls its base's", ALL, X[:2], "r = load(x[0:C(2).rows])", before="""
    class C(nl.NKIObject):
        def __init__(self, rows):
            super().__init__()
            self.rows = rows
""")  # fmt: skip
in_kernel("asdict and copies of values", ALL, X + 1, """
    made = C(t)
    given = asdict(made)
    assert given["dtype"] is nl.bfloat16 and given["op"] is nl.add
    assert copy.deepcopy(made).op is nl.add and astuple(made)[0] is t
    nisa.tensor_scalar(copy.deepcopy(made).tile, given["tile"], copy.copy(made).op, 1.0)
""", before="""
    @dataclass
    class C(nl.NKIObject):
        tile: object = None
        dtype: object = nl.bfloat16
        op: object = nl.add
        engine: object = nisa.engine.vector if hasattr(nisa, "engine") else None
""")  # fmt: skip
form("a tensor as a condition", PARSED, np.stack([X, 2 * X]), """
    @nki.jit
    def k(x, other=None):
        if not other:
            return store(load(x))
        return store(load(other)) if other else None
    np.stack([k(X), k(X, 2 * X)])
""")  # fmt: skip
form("a named tuple, taken and returned", ALL, np.stack([X, X]), """
    class Pair(typing.NamedTuple):
        a: object
        b: object
    k = nki.jit(lambda pair: Pair(store(load(pair.a)), store(load(pair.b))))
    np.stack([k(Pair(X, X)).a, k(Pair(X, X)).b])
""")  # fmt: skip
in_kernel("numbers of NumPy", ALL, (X + 3) * 2, """
    nisa.tensor_scalar(t, t, nl.multiply, True)
    nisa.tensor_scalar(t, t, nl.add, np.bool_(True), op1=nl.add, operand1=np.int64(2))
    nisa.activation(t, nl.copy, t, scale=np.float16(2))
""")  # fmt: skip
in_kernel("collectives as values", ALL, X, """
    group = ncc.ReplicaGroup([[0, 1], [2, 3]])
    names = {"all_reduce": ncc.all_reduce, "rank": ncc.rank_id}
    assert group is not None and callable(names["rank"])
""", before="import nki.collectives as ncc")  # fmt: skip

# -- instructions and access patterns -------------------------------------------------------------

form("a barrier", ALL, X, """
    @nki.jit
    def k(x):
        out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        rows = nl.ds(2 * nl.program_id(0), 2)
        nisa.dma_copy(dst=out[rows], src=x[rows])
        nisa.core_barrier(out, (0, 1))
        return out
    k[2](X)
""")  # fmt: skip
for _dtype, _value in (("int32", "0.0"), ("int8", "-3.0"), ("uint32", "np.float32(7)")):
    in_kernel(f"memset of {_dtype} to {_value}", ALL, np.full((4, 8), eval(_value)), f"""
        r = nl.ndarray((4, 8), dtype=nl.{_dtype}, buffer=nl.sbuf)
        nisa.memset(r, {_value})
    """)  # fmt: skip
in_kernel("a destination with step zero", ALL, X.sum(axis=1, keepdims=True), """
    r, unused = (nl.ndarray((4, 1), dtype=nl.float32, buffer=nl.sbuf) for _ in range(2))
    nisa.tensor_scalar_reduce(
        unused.ap([[1, 4], [0, 8]]), t, nl.multiply, 1.0, reduce_op=nl.add, reduce_res=r
    )
""")  # fmt: skip
in_kernel("a pattern beyond the tensor that nothing uses", ALL, X, "t.ap([[8, 4], [1, 8]], 1000)")
in_kernel("steps of one element", ALL, X[:1, None, ::2], """
    r = nl.ndarray((1, 1, 4), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(r, t.ap([[999, 1], [777, 1], [2, 4]]))
""")  # fmt: skip
form("is_transpose on trn1", PARSED, X.T, """
    @nki.jit
    def k(x):
        t, eye = load(x), nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.iota(eye, pattern=[[-1, 4]], offset=0, channel_multiplier=1)
        nisa.tensor_scalar(eye, eye, nl.equal, 0.0)
        product = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, t, eye, is_transpose=True)
        r = nl.ndarray((8, 4), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(r, product)
        return store(r)
    k(X)
""")  # fmt: skip

# -- 0.1 ------------------------------------------------------------------------------------------

form("static_cast of an array on the host", "0.1", X, """
    nki.jit(lambda x: store(load(x)))(nl.static_cast(X, nl.bfloat16))
""")  # fmt: skip
in_kernel("lazy_initialization", "0.1", 2 * X, """
    r = nl.zeros((4, 8), nl.float32, buffer=nl.psum, lazy_initialization=True)
    for _ in nl.affine_range(2):
        r += t
""")  # fmt: skip
in_kernel("tensor_copy with a dtype", "0.1", X, "r = nisa.tensor_copy(t, dtype=nl.bfloat16)")
in_kernel("two block axes", "0.1", np.full((4, 8), 3.0), """
    blocks = nl.full((2, 3, nl.par_dim(4), 8), 1.5, dtype=nl.float32, buffer=nl.sbuf)
    r = blocks[0, 1] + blocks[1, 2]
""")  # fmt: skip
in_kernel("a masked copy beyond the tensor", "0.1", np.pad(X, ((0, 0), (0, 8))), """
    i, j = nl.mgrid[0:4, 0:16]
    r = nl.zeros((4, 16), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=r[i, j], src=x[i, j], mask=j < 8)
""")  # fmt: skip


CASES = [
    pytest.param(name, version, id=f"{name}-{version}")
    for name, (versions, _, _) in FORMS.items()
    for version in versions.split()
]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_a_form_that_changes_no_value_runs(name, version):
    _, text, expected = FORMS[name]
    head, _, last = text.strip().rpartition("\n")
    source = f"{_HEAD}{_OLD if version == '0.1' else _NEW}{head}\nresult = {last.strip()}\n"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    with use("beta1" if version == "0.1" else "beta2", nki=version):
        names = {"__name__": "kernel"}
        exec(compile(source, name, "exec", dont_inherit=True), names)

    assert np.array_equal(np.asarray(names["result"]).astype(np.float32), expected)
