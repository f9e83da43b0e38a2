"""What the modules offer against what NKI documents, version by version."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from nki_coverage import (
    NAMES,
    PARTLY,
    Name,
    known_names,
    modelled,
    modules_of,
    pages_of_0_7,
)

import nki_runtime
from neuroncore.errors import KernelError, UnsupportedError
from neuroncore.surface import VERSIONS

MODULES = {version: modules_of(version) for version in VERSIONS}
WHOLE = ("nki", "nki.isa", "nki.language", "nki.compiler")
"""The modules whose functions 0.1 documents."""

DIFFERENT: dict[str, tuple[str, str]] = {
    "nki.isa.nc_matmul": (
        "(stationary, moving, *, is_stationary_onezero=False, is_moving_onezero=False, "
        "is_transpose=False, tile_position=(), tile_size=(), mask=None, perf_mode=None, **kwargs)",
        "perf_mode= is documented from 0.2 on; the vendor's own kernels of 0.1 give it",
    ),
    "nki.isa.tensor_scalar_reduce": (
        "(data, op0, operand0, *, reduce_op, reduce_res, reverse0=False, dtype=None, mask=None, "
        "**kwargs)",
        "keyword-only in the documents; a public kernel gives the first three by place",
    ),
    "nki.language.zeros": (
        "(shape, dtype, *, buffer=None, name='', lazy_initialization=False, **kwargs)",
        "public kernels, made by the vendor's generator, give lazy_initialization=",
    ),
}
"""Functions of 0.1 whose signature is another than the documented one: which, and why."""

NOT_MODELLED = {
    "nki.compiler.allocation_scope": "the documents print neither parameters nor meaning",
    "nki.compiler.multi_buffer": "the documents print no meaning",
    "nki.isa.builtin_custom_op": "custom operators are compiled for the device",
    "nki.language.gemm_grid": "the documents print neither parameters nor meaning",
    "nki.language.gemm_stationary_grid": "the documents print neither parameters nor meaning",
}
"""Functions of 0.1 that are rejected, and why."""


def functions(version: str, *modules: str) -> list[Name]:
    """The documented functions of a version that kernels can call here."""
    return [n for n in documented_functions(version, *modules) if is_function(version, n)]


def documented_functions(version: str, *modules: str) -> list[Name]:
    return [
        n
        for n in known_names()
        if n.kind == "function" and version in n.versions and n.module in modules
    ]


def is_function(version: str, name: Name) -> bool:
    """Whether it is modelled as one; 0.2 names operations (nl.add) that are not functions."""
    found = ours(version, name) if modelled(MODULES[version], name) == "yes" else None
    return inspect.isfunction(found) or hasattr(found, "__signature__")


def ours(version: str, name: Name) -> Any:
    return getattr(MODULES[version][name.module], name.name)


def full(name: Name) -> str:
    return f"{name.module}.{name.name}"


# -- 0.1: names, order, kinds, defaults -----------------------------------------------------------


def documented(parameters: str, modules: Mapping[str, ModuleType]) -> inspect.Signature:
    """The signature that the documents print; names in its defaults come from the modules."""
    scope: dict[str, Any] = {**vars(modules["nki.isa"]), "np": np}
    exec(f"def f({parameters}): ...", scope)
    return inspect.signature(scope["f"])


def comparable(signature: inspect.Signature) -> inspect.Signature:
    """Without annotations; how an open end (**kwargs) is called concerns no caller."""
    return inspect.Signature(
        [
            p.replace(annotation=p.empty, name="kwargs" if p.kind is p.VAR_KEYWORD else p.name)
            for p in signature.parameters.values()
        ]
    )


def signature_of(name: Name) -> inspect.Signature:
    return comparable(inspect.signature(ours("0.1", name)))


OLD = [pytest.param(n, id=full(n)) for n in functions("0.1", *WHOLE)]


@pytest.mark.parametrize("name", OLD)
def test_a_function_of_0_1_has_the_documented_signature(name):
    printed = comparable(documented(name.parameters["0.1"], MODULES["0.1"]))

    if full(name) in DIFFERENT:
        text, _ = DIFFERENT[full(name)]
        assert str(signature_of(name)) == text != str(printed)
    else:
        assert signature_of(name) == printed


def test_every_function_of_0_1_is_compared_or_named():
    compared = {full(n) for n in functions("0.1", *WHOLE)}
    all_of_them = {full(n) for n in documented_functions("0.1", *WHOLE)}

    assert compared | NOT_MODELLED.keys() == all_of_them
    assert not compared & NOT_MODELLED.keys()
    assert DIFFERENT.keys() <= compared
    in_stubs = 34 + 100 + 5 + 6  # isa, language, nki, compiler in SDK 2.26's stubs
    assert len(all_of_them) >= in_stubs


NOT_DOCUMENTED_SO = {
    "cmp_op": "the stubs from 0.4 on print equal for nl.equal",
    "reduce_op": "the stubs from 0.4 on print maximum for nl.maximum",
    "on_false_value": "the stubs from 0.4 on leave it out",
}
"""Parameters of 0.2 to 0.7 whose default is compared by its name alone."""


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_functions_of_nki_isa_have_the_documented_defaults(version):
    compared = functions(version, "nki.isa")

    for name in compared:
        taken = inspect.signature(ours(version, name)).parameters
        for parameter, _, text in (p.partition("=") for p in _split(name.parameters[version])):
            if parameter not in NOT_DOCUMENTED_SO:
                assert taken[parameter].default == _default(text, version), full(name)
    left_out = [n for n in documented_functions(version, "nki.isa") if n not in compared]
    assert {modelled(MODULES[version], name) for name in left_out} <= {"rejected"}


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(", ") if part.strip() and part.strip() != "*"]


def _default(text: str, version: str) -> Any:
    if not text:
        return inspect.Parameter.empty
    return eval(text, {**vars(MODULES[version]["nki.isa"])})


@pytest.mark.parametrize("name", NOT_MODELLED)
def test_what_is_not_modelled_is_rejected_by_name(name):
    module, _, function = name.rpartition(".")

    with pytest.raises(UnsupportedError, match=f"{function} .NKI 0.1. is not modelled"):
        getattr(MODULES["0.1"][module], function)


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ("x, *, dtype=None", "y, *, dtype=None"),
        ("x, *, dtype=None", "x, dtype=None"),
        ("x, y", "y, x"),
        ("x, *, dtype=bool", "x, *, dtype=None"),
        ("x, *, mask=None, **kwargs", "x, *, mask=None"),
        ("engine=engine.unknown", "engine=engine.vector"),
    ],
)
def test_the_comparison_sees_names_order_kinds_defaults_and_open_ends(given, changed):
    one, other = (comparable(documented(text, MODULES["0.1"])) for text in (given, changed))

    assert one != other


def test_the_decorators_of_0_1_take_their_function_by_its_documented_name():
    nki = MODULES["0.1"]["nki"]

    def kernel(x):
        return x

    x = np.ones((2, 2), np.float32)
    takers: list[tuple[Callable[..., Any], str]] = [
        (nki.jit, "func"),
        (nki.profile, "func"),
        (nki.baremetal, "kernel"),
        (nki.benchmark, "kernel"),
    ]

    assert [take(**{name: kernel}).function for take, name in takers] == [kernel] * 4
    np.testing.assert_array_equal(nki.jit(func=kernel, mode="trace")(x), x)


# -- later versions: names and order --------------------------------------------------------------

# What the stubs print as *args is spelled out here.
OPEN_ENDED = frozenset({"*args", "**kwargs"})

LONGER: dict[tuple[str, str], tuple[list[str], str]] = {
    ("0.2", "nki.language.ndarray"): (["address"], "of 0.3; rejected by name in 0.2"),
}
"""Further parameters of functions in later versions, and why."""

LATER = [
    pytest.param(v, n, id=f"{v}-{full(n)}")
    for v in VERSIONS[1:]
    for n in functions(v, "nki.isa", "nki.language")
]


def names_of(parameters: str) -> list[str]:
    """ "dst, src, name=None" → ["dst", "src", "name"], without separators and open ends."""
    depth, words, word = 0, [], ""
    for character in parameters + ",":
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            words.append(word.strip())
            word = ""
        else:
            word += character
    bare = (w.partition("=")[0].strip() for w in words)
    return [w for w in bare if w and w != "*" and w not in OPEN_ENDED]


@pytest.mark.parametrize(("version", "name"), LATER)
def test_a_modelled_function_takes_the_documented_parameters(version, name):
    taken = [
        p.name
        for p in inspect.signature(ours(version, name)).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]

    more, _ = LONGER.get((version, full(name)), ([], ""))
    assert taken == names_of(name.parameters[version]) + more


COLLECTIVES = [
    pytest.param(v, n, id=f"{v}-{n.name}")
    for v in VERSIONS[1:]
    for n in documented_functions(v, "nki.collectives")
]


@pytest.mark.parametrize(("version", "name"), COLLECTIVES)
def test_a_collective_has_the_documented_signature_though_it_is_rejected(version, name):
    taken = comparable(inspect.signature(ours(version, name)))

    assert taken == comparable(documented(name.parameters[version], MODULES[version]))


def keyword_only(parameters: str) -> list[str]:
    """The parameters behind `*`."""
    _, found, rest = parameters.partition("*, ")
    return names_of(rest) if found else []


@pytest.mark.parametrize(
    "name", [pytest.param(n, id=full(n)) for n in functions("0.7", "nki.language")]
)
def test_functions_of_0_7_take_by_name_alone_what_is_documented_so(name):
    taken = inspect.signature(ours("0.7", name)).parameters.values()

    assert [p.name for p in taken if p.kind is p.KEYWORD_ONLY] == keyword_only(
        name.parameters["0.7"]
    )


CLASSES = [n for n in known_names() if n.kind == "class" and n.parameters.get("0.7")]


@pytest.mark.parametrize("name", [pytest.param(n, id=full(n)) for n in CLASSES])
def test_a_class_of_0_7_takes_the_documented_parameters(name):
    taken = inspect.signature(ours("0.7", name)).parameters

    assert [*taken] == names_of(name.parameters["0.7"])


def test_every_page_of_0_7_that_was_read_is_of_a_known_name():
    read = {(module, name) for module, names in pages_of_0_7()["read"].items() for name in names}
    known = {(n.module, n.name): n for n in known_names()}
    removed = {("nki.language", "dynamic_range")}

    assert read <= known.keys()
    assert {key for key in read if "0.7" not in known[key].parameters} == removed


def test_names_of_0_7_without_a_page_have_the_parameters_of_0_6():
    pages = pages_of_0_7()["read"]
    unread = [
        n for n in known_names() if "0.7" in n.versions and n.name not in pages.get(n.module, {})
    ]

    assert len(unread) > 200
    for name in unread:
        assert name.parameters["0.7"] == name.parameters["0.6"], full(name)


METHODS = [
    pytest.param(v, n, id=f"{v}-{n.name}")
    for n in known_names()
    if n.kind == "method" and n.name.startswith("NkiTensor.") and "__" not in n.name
    for v in n.versions
]


@pytest.mark.parametrize(("version", "name"), METHODS)
def test_a_tensor_method_takes_the_documented_parameters(version, name):
    method = getattr(MODULES[version]["nki.language"].NkiTensor, name.name.partition(".")[2])

    taken = list(inspect.signature(method).parameters.values())[1:]
    documented_ones = [part.partition("=") for part in _split(name.parameters[version])]
    assert [p.name for p in taken] == [n for n, _, _ in documented_ones]
    if name.name == "NkiTensor.ap":
        return  # offset=0 up to 0.4: None means the same there
    assert [p.default for p in taken] == [_default(t, version) for _, _, t in documented_ones]


# -- every name in every version ------------------------------------------------------------------


def paths(name: Name) -> list[str]:
    """Names to look up: its own, and its members if it is an enum."""
    members = dict.fromkeys(m for text in name.members.values() for m in text.split())
    return [name.name, *(f"{name.name}.{member}" for member in members)]


def asked(version: str, module: str, path: str) -> Any:
    """What the language gives for a name; KernelError where it rejects it."""
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_every_name_of_any_version_is_there_or_rejected_by_name(version):
    """Never Python's own AttributeError, and no module that is not found."""
    absent = set()
    with nki_runtime.use(nki=version):
        for name in known_names():
            for path in paths(name):
                try:
                    asked(version, name.module, path)
                except KernelError as rejected:
                    assert any(part in str(rejected) for part in path.split("."))
                    absent.add((name.module, path))

    has = {(n.module, n.name) for n in known_names() if version in n.versions}
    assert absent & has <= REJECTED
    assert {("nki.language", "arange"), ("nki", "baremetal")} <= absent  # of 0.1


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_version_has_its_own_members_of_tile_size(version):
    members = [n for n in known_names() if n.name.startswith("tile_size.")]
    own = {n.name for n in members if version in n.versions} - {n for _, n in REJECTED}
    sizes = MODULES[version]["nki.language"].tile_size

    assert len(members) == 15
    assert {n.name for n in members if hasattr(sizes, n.name.partition(".")[2])} == own
    assert {f"tile_size.{name}" for name in dir(sizes)} == own


REJECTED = {
    ("nki", "Kernel.__getitem__"), ("nki", "Kernel.with_schedule"),  # of what nki.jit gives
    ("nki.language", "tile_size.psum_min_align"), ("nki.language", "tile_size.sbuf_min_align"),
}  # fmt: skip
"""Names that a version has, and that are rejected: no document prints their value."""


def test_the_table_holds_every_version():
    versions = {v for name in known_names() for v in name.versions}

    assert versions == set(VERSIONS)
    assert NAMES.is_file()


def test_what_is_partly_there_is_there():
    known = {(n.module, n.name): n for n in known_names()}

    for module, name, version in PARTLY:
        assert modelled(MODULES[version], known[module, name]) == "yes"
