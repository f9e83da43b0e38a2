"""What calls of a program touch, iteration by iteration."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.effects import Touch, footprint
from neuroncore.machine.accesses import conflict, touched
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.program import Call, Loop, call_effects, calls, execute_program, parse_program

PROGRAM = parse_program("""
program("trn2", "0.6")
def p(x: float32[256, 512], rows: int32[32, 1]):
    out = buffer(float32[256, 512], shared_hbm)
    for i in range(2):
        for j in range(4):
            t = buffer(float32[128, 128], sbuf)
            acc = buffer(float32[128, 128], psum)
            dma_copy(dst=t[:, :], src=x[128*i : 128*i + 128, 128*j : 128*j + 128])
            nc_matmul(dst=acc[:, :], stationary=t[:, :], moving=t[:, :])
            activation(dst=t[:, :], data=acc[:, :], op=exp, scale=1.0, reduce_cmd=reset_reduce)
            dma_copy(dst=out[128*i : 128*i + 128, 128*j : 128*j + 128], src=t[:, :])
    return out
""")


def iterations(body, values):
    for statement in body:
        if isinstance(statement, Loop):
            for value in range(statement.start, statement.stop, statement.step):
                yield from iterations(statement.body, {**values, statement.variable: value})
        elif isinstance(statement, Call):
            yield statement, values


def named(found):
    """Without the identity of storages; the only parameter touched has no name while it runs."""
    return [
        (t.operand, t.touch, getattr(t.where, "name", t.where) or "x", t.footprints, t.is_register)
        for t in found
    ]


class Recorder(Watcher):
    def __init__(self):
        self.seen = []

    def will(self, event):
        self.seen.append(named(touched(event)))


def test_a_program_knows_what_its_execution_will_touch():
    recorder, core = Recorder(), NeuronCore(PROGRAM.target)
    arrays = [np.zeros((256, 512), np.float32), np.zeros((32, 1), np.int32)]
    with watched_by(recorder):
        execute_program(PROGRAM, arrays)

    foretold = [
        named(call_effects(call, PROGRAM.buffers(), core, PROGRAM.nki).at(values))
        for call, values in iterations(PROGRAM.body, {})
    ]

    assert len(foretold) == 32
    assert foretold == recorder.seen


def test_stores_of_different_iterations_do_not_conflict():
    *_, store = calls(PROGRAM.body)
    effects = call_effects(store, PROGRAM.buffers(), NeuronCore())

    one, other = (next(t for t in effects.at({"i": 1, "j": j}) if t.where == "out") for j in (2, 3))

    assert one.footprints == (footprint((128 * 512 + 256) * 4, (128, 512), (2048, 1), 1),)
    assert conflict(one, one) and not conflict(one, other)


INDIRECT = parse_program("""
program("trn2", "0.6")
def p(x: float32[256, 512], rows: int32[32, 1]):
    out = buffer(float32[32, 64], shared_hbm)
    index = buffer(int32[32, 1], sbuf)
    dma_copy(dst=index[:, :], src=rows[:, :])
    t = buffer(float32[32, 64], sbuf)
    dma_copy(dst=t[:, :], src=x.ap([[512, 32], [1, 64]], 128, vector_offset=index[:, :], dim=0))
    dma_copy(dst=out[:, :], src=t[:, :])
    return out
""")


def test_rows_that_the_device_chooses_are_all_rows():
    _, gather, _ = calls(INDIRECT.body)
    found = call_effects(gather, INDIRECT.buffers(), NeuronCore()).at({})

    by_name = {t.operand: t for t in found}
    assert by_name["src"].footprints == (footprint(512, (256, 256), (2048, 1), 1),)
    assert by_name["src.index"].where == "index"
    assert by_name["src.index"].touch is Touch.read


def test_a_missing_loop_variable_is_named():
    load, *_ = calls(PROGRAM.body)
    with pytest.raises(KeyError, match="j"):
        call_effects(load, PROGRAM.buffers(), NeuronCore()).at({"i": 0})
