"""Pointers and views that loops pass from one iteration to the next."""

import pytest
from packages.tokenplan.tests.tile_ir.bytecode_cases import (
    NO_FLAGS,
    POINTER,
    WEAK,
    explained,
    function,
    lost,
)

from tokenplan.tile_ir import compiler, explain_bytecode
from tokenplan.tile_ir.bytecode import BytecodeError
from tokenplan.tile_ir.bytecode.building import I32
from tokenplan.tile_ir.bytecode.types import TOKEN, pointer, tile

WIDE = ((4096, 64), (64, 1), (4, 64))
ROW = tile(pointer("f32"), 64)


def row(body, base):
    """Pointers to 64 elements."""
    one = body.one("reshape", tile(pointer("f32"), 1), source=base)
    spread = body.one("broadcast", ROW, source=one)
    return body.one("offset", ROW, pointers=spread, offsets=body.one("iota", tile("i32", 64)))


def advanced(trips, is_same):
    """Each iteration loads by pointers and advances them, as Triton's loops do; the sum is stored
    in the same array or in another one."""

    def build(body, p, q, n):
        value, start = body.constant(tile("f32", 64), 0.0), body.one("make_token", TOKEN)
        by = body.constant(tile("i32", 64), 64)

        def repeated(k, pointers, token):
            _, after = body.add("load_ptr_tko", (tile("f32", 64), TOKEN), WEAK, source=pointers,
                                token=token)  # fmt: skip
            return [body.one("offset", ROW, pointers=pointers, offsets=by), after]

        _, token = body.loop(n if trips is None else trips, repeated, [row(body, p), start])
        body.add("store_ptr_tko", (TOKEN,), WEAK, pointers=row(body, p if is_same else q),
                 value=value, token=token)  # fmt: skip

    return function(build, POINTER, POINTER, I32)


@pytest.mark.parametrize("trips", [3, None])
@pytest.mark.parametrize("is_same", [True, False])
def test_pointers_that_a_loop_advances_are_into_their_parameter(is_same, trips):
    text = explained(advanced(trips, is_same), [3], (2**30,) * 2, distinct=[("p0", "p1")])
    assert "load reads p0\n" in text and f"store writes p{int(not is_same)}\n" in text
    assert f"{int(is_same)} orders to keep" in text


def test_the_compiler_accepts_pointers_of_a_loop_with_needed_tokens(tileiras):
    _, new = explain_bytecode(advanced(None, is_same=True))
    assert compiler.compile_bytecode(new, "sm_90").cubin


def exchanged(kind, given, ends):
    """A loop whose iterations load one array and store the other one, by turns."""

    def build(body, p, q, n):
        zero, start = [body.integer(0)] * 2, body.one("make_token", TOKEN)
        made = [given(body, base) for base in (p, q)]

        def repeated(k, one, other, token):
            views = [v if kind is None else body.view(v, *WIDE) for v in (one, other)]
            value, token = body.load(views[0], zero, token)
            return [other, one, body.store(views[1], zero, value, token)]

        ends(body, n, repeated, [*made, start])

    return function(build, POINTER, POINTER, I32)


def for_loop(body, n, repeated, inits):
    body.loop(n, repeated, inits)


def endless_loop(body, n, repeated, inits):
    """A `loop` that ends after as many iterations."""
    kinds = [value.type for value in inits]
    one = body.integer(1)
    with body.block((I32, *kinds)) as region:
        count, *carried = region.arguments
        compared = {"comparison": "lt", "signedness": "signed"}
        is_more = body.one("cmpi", tile("i1"), compared, lhs=count, rhs=n)
        with body.block(()) as again:
            body.add("yield", (), values=[])
        with body.block(()) as last:
            body.add("break", (), values=carried)
        body.add("if", (), {}, (again.block, last.block), condition=is_more)
        after = body.one("addi", I32, NO_FLAGS, lhs=count, rhs=one)
        body.add("continue", (), values=[after, *repeated(count, *carried)])
    body.add("loop", kinds, {}, (region.block,), inits=[body.integer(0), *inits])


@pytest.mark.parametrize("ends", [for_loop, endless_loop])
@pytest.mark.parametrize("is_pointer", [True, False])
def test_arrays_that_iterations_exchange_are_both_accessed(is_pointer, ends):
    given = (lambda body, base: base) if is_pointer else (lambda body, p: body.view(p, *WIDE))
    data = exchanged("pointer" if is_pointer else None, given, ends)
    text = explained(data, [3], (2**30,) * 2, distinct=[("p0", "p1")])
    assert "load reads p0 or p1\n" in text and "store writes p0 or p1\n" in text
    assert "store -> load  1 iteration" in text.partition("tokens that it has")[0]


def test_a_loop_of_pointers_that_are_not_known_is_rejected_by_name():
    def build(body, p, n):
        other = body.one("int_to_ptr", POINTER, source=n)

        def repeated(k, pointers):
            body.add("load_ptr_tko", (tile("f32"), TOKEN), WEAK, source=pointers)
            return [other]

        body.loop(4, repeated, [p])

    with pytest.raises(BytecodeError, match="load is not an access to parameters"):
        explain_bytecode(function(build, POINTER, tile("i64")))


@pytest.mark.parametrize("has_token", [True, False])
def test_a_loop_that_is_not_calculated_results_in_what_its_iterations_may_pass_on(has_token):
    """Its iterations are counted from a loaded number; each passes another array on."""

    def build(body, p, q, numbers):
        first = body.add("load_ptr_tko", (I32, TOKEN), WEAK, source=numbers)[0]
        value = body.constant(tile("f32"), 0.0)
        with body.block((I32, POINTER)) as region:
            count, given = region.arguments
            compared = {"comparison": "lt", "signedness": "signed"}
            is_less = body.one("cmpi", tile("i1"), compared, lhs=count, rhs=body.integer(9))
            with body.block(()) as again:
                body.add("yield", (), values=[])
            with body.block(()) as last:
                body.add("break", (), values=[given])
            body.add("if", (), {}, (again.block, last.block), condition=is_less)
            after = body.one("addi", I32, NO_FLAGS, lhs=count, rhs=body.integer(1))
            body.add("continue", (), values=[after, q])
        (found,) = body.add("loop", (POINTER,), {}, (region.block,), inits=[first, p])
        token = body.add("store_ptr_tko", (TOKEN,), WEAK, pointers=found, value=value)[0]
        body.add("load_ptr_tko", (tile("f32"), TOKEN), WEAK, source=q,
                 token=token if has_token else None)  # fmt: skip

    data = function(build, POINTER, POINTER, tile(pointer("i32")))
    assert bool(lost(data, num_bytes=(64,) * 3)) != has_token
    assert "store writes p0 or p1\n  load.2 reads p1" in explain_bytecode(data)[0]
