"""The player of the page gives what the timeline of Python gives, to the tick."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from random import Random
from typing import Any

import pytest
from members import ROOT

from neuroncore.machine.core import NeuronCore
from neuroncore.program import Program, calls, parse_program
from neuroncore.targets import TARGETS
from neuroncore.timeline import Timeline, constants, estimate, machine, ticks_per_ns
from neuroncore.timeline.compilation.call_demands import Described
from neuroncore.timeline.compilation.compiler import Compiler
from neuroncore.timeline.model.clock import Clock, Shares
from neuroncore.timeline.periodicity.steady_state import loop_player
from neuroncore.timeline.playing.state import State
from neuroncore.work import charging
from nki_scope import Reporter
from nki_scope.document import Columns
from nki_scope.sections import ReplaySections, instances_of, rules
from nki_scope.sections.micro_op_tables import Candidate, replay

CHANGES = {
    "DMA_START": 0.5, "DMA_BANDWIDTH": 2, "DMA_GAP": 0, "DMA_DESCRIPTOR": 3, "SEMAPHORE": 7,
    "DMA_QUEUE_FLOOR": 0.25, "TENSOR_LATENCY": 2, "SCALAR_LATENCY": 0, "WARM_UP": 0.5,
    "ACT_TABLE_LOAD": 2, "DMA_ISSUE": 1.7, "DMA_STAGGER": 0.1, "LOAD_LATENCY": 2,
    "REORDER_HORIZON": 0.1,
}  # fmt: skip


def _random_kernels() -> Any:
    path = ROOT / "packages" / "neuroncore" / "tests" / "timeline" / "random_kernels.py"
    spec = spec_from_file_location("random_kernels", path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS_BY_SEED = "trn1", "trn2", "trn3"
random_program = _random_kernels().random_program


class Page(Columns):
    """Columns as lists, for JSON."""

    def add(self, values: Any) -> Any:
        return [int(v) for v in values]


def table_of(program: Program, mode: str = "as_written") -> dict[str, Any]:
    timeline = estimate(program, verified=True, skip_periods=False, mode=mode)
    return ReplaySections(timeline, Page()).of(timeline)[0]


def change(program: Program, **changes: Any) -> dict[str, Any]:
    nothing = {"target": program.target, "values": {}, "queues": None, "copies": {}, "cuts": [],
               "queueOf": {}}  # fmt: skip
    return nothing | changes


PLAY = """((replay, model, change) => {
    const p = nkiScope.play(replay, model, change), list = (of) =>
        Object.fromEntries(Object.entries(of).map(([name, column]) => [name, [...column]]));
    return {end: p.end, perNs: p.perNs, lanes: p.lanes, bars: list(p.bars), path: list(p.path)};
})"""


@pytest.fixture(scope="module")
def player(browser, tmp_path_factory):
    """Plays tables in the script of a page."""
    reporter = Reporter("test", tmp_path_factory.mktemp("player") / "page.html")
    reporter.write()
    browser.open(reporter.file)
    browser.run(f"globalThis.run = {PLAY}; globalThis.model = {json.dumps(rules())}; 0")

    def play(table: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
        return browser.run(f"run({json.dumps(table)}, model, {json.dumps(changed)})")

    return play


def shown(timeline: Timeline) -> dict[str, Any]:
    """What the player gives, of a timeline of Python."""
    per_ns = ticks_per_ns(machine(timeline.target))
    ticks = lambda ns: round(ns * per_ns)  # noqa: E731
    names, table = rules()["lanes"], rules()
    return {
        "end": ticks(timeline.total_ns), "perNs": per_ns,
        "bars": {
            "lane": [names.index(b.lane) if b.queue is None else len(names) + b.queue
                     for b in timeline.bars],
            "kind": [table["kinds"].index(b.kind) for b in timeline.bars],
            "start": [ticks(b.start_ns) for b in timeline.bars],
            "busy": [ticks(b.busy_ns) for b in timeline.bars],
            "end": [ticks(b.end_ns) for b in timeline.bars],
            "cause": [-1 if b.waited_for is None else b.waited_for for b in timeline.bars],
            "why": [table["causes"].index(b.why) for b in timeline.bars],
            "bytes": [b.hbm_bytes for b in timeline.bars],
            "instance": instances_of(timeline),
        },
        "lanes": {
            name: {"busy": use.busy_ns, "stalls": use.stalls}
            for name, use in timeline.lanes.items()
        },
        "path": {
            "bar": [step.bar.number for step in timeline.critical_path()],
            "ticks": [ticks(step.path_ns) for step in timeline.critical_path()],
        },
    }  # fmt: skip


def cases(seed: int) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Changes of the player, and the arguments of estimate that make the same."""
    random = Random(seed)
    yield {}, {}
    for target in TARGETS:
        name = random.choice(list(CHANGES))
        value = constants().at(target)[name] * CHANGES[name]
        yield (
            {"target": target, "values": {name: value}},
            {"target": target, "constants": constants().but(name, target, value)},
        )


QUICK, PROGRAMS, AT_ONCE = 6, 300, 42
SEEDS = [range(QUICK), *(range(n, n + AT_ONCE) for n in range(QUICK, PROGRAMS, AT_ONCE))]


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("nki", ["0.1", "0.6"])
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(s, marks=pytest.mark.thorough if s.start else (), id=f"programs to {s.stop}")
        for s in SEEDS
    ],
)
def test_programs_are_played_to_the_tick(player, seeds, nki, mode):
    for seed in seeds:
        program = random_program(seed, TARGETS_BY_SEED[seed % 3], every_transfer=True)
        program = replace(program, nki=nki)
        table = table_of(program, mode)
        for changes, arguments in cases(seed):
            target = changes.get("target", program.target)
            if "reason" in table["candidates"][target]:
                continue
            expected = estimate(program, mode=mode, verified=True, skip_periods=False, **arguments)
            assert played(player, table, program, **changes) == shown(expected), (seed, changes)


def test_the_programs_have_every_kind_of_transfer_and_engine():
    programs = [random_program(seed, "trn2", every_transfer=True) for seed in range(QUICK)]
    made = [call for program in programs for call in calls(program.body)]
    lanes = [estimate(p, mode="as_written", verified=True).lanes for p in programs]

    dmas = {"dma_copy", "dma_transpose", "dma_compute"}
    assert dmas <= {call.instruction for call in made}
    modes = {call.attrs["dge_mode"].name for call in made if call.instruction == "dma_copy"}
    assert modes >= {"unknown", "swdge", "hwdge"}
    assert any("dst_rmw_op" in str(call) and call.attrs.get("dst_rmw_op") for call in made)
    busy = {name for each in lanes for name, use in each.items() if use.busy_ns}
    assert busy >= {"tensor", "vector", "scalar", "gpsimd", "sync"}


def played(player, table, program, **changes) -> dict[str, Any]:
    found = player(table, change(program, **changes))
    del found["bars"]["site"], found["bars"]["call"]
    return found


def estimated(program: Program, queues: int = 16, **kinds: Any) -> Timeline:
    """The timeline with as many queues, by a compiler with these attributes."""
    values, facts = constants().at(program.target), machine(program.target)
    compiler = type("Changed", (Compiler,), kinds)
    with charging(values):
        state = State(Clock(facts, values), queues, reorders=False)
        core = NeuronCore(program.target, watchers=())
        made = compiler(program, Described(program, core, values), state)
        for step in made.body(program.body):
            (step if callable(step) else loop_player(made, step, False))()
    return Timeline(program, "as_written", state, made.sites, values, {})


@pytest.mark.parametrize("queues", [1, 3, 16])
def test_fewer_queues_are_played_to_the_tick(player, queues):
    for seed in range(6):
        program = random_program(seed, "trn2")
        found = played(player, table_of(program), program, queues=queues)
        assert found == shown(estimated(program, queues)), seed


def test_a_dma_on_another_queue_is_played_to_the_tick(player):
    for seed in range(6):
        program = random_program(seed, "trn2")
        (candidate,) = replay(program).candidates["trn2"]
        assert isinstance(candidate, Candidate)
        sites = [n for n, work in enumerate(candidate.works) if work["kind"] == 4]
        chosen = {sites[0]: 3, sites[-1]: 3}
        count = iter(range(len(sites)))
        number = iter(sites)

        def queue(self: Compiler, count=count, number=number, chosen=chosen) -> int:
            return 5 + chosen.get(next(number), next(count)) % 16

        found = played(player, table_of(program), program, queueOf=chosen)
        assert found == shown(estimated(program, _queue=queue)), seed


@pytest.mark.parametrize("factor", [0, 0.3, 4])
def test_an_instruction_of_another_cost_is_played_to_the_tick(player, factor):
    for seed in range(4):
        program = random_program(seed, "trn2")
        table = table_of(program)
        for chosen in (0, *Random(seed).sample(range(len(table["tables"][0]["calls"])), 3)):

            def step(self: Compiler, site: Any, demand: Any, chosen: int = chosen) -> Any:
                if site.number != chosen:
                    return Compiler._step(self, site, demand)
                site.work = [scaled(op, factor) for op in site.work]
                clock, plain = self.state.clock, self.state.clock.transfer
                clock.transfer = lambda op: longer(plain(op), factor)
                made = Compiler._step(self, site, demand)
                clock.transfer = plain
                return made

            found = played(player, table, program, costs={chosen: factor})
            assert found == shown(estimated(program, _step=step)), (seed, chosen)


def scaled(op: Any, factor: float) -> Any:
    """The micro-op with its interval times the factor; a transfer has none."""
    return replace(op, interval=factor * op.interval) if hasattr(op, "interval") else op


def longer(shares: Shares, factor: float) -> Shares:
    return shares._replace(ticks=max(1, round(factor * shares.ticks)))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [1, 8, 100, 512])
def test_transfers_of_few_rows_and_within_hbm_are_played_to_the_tick(player, target, columns):
    copies = "\n".join(
        f"    dma_copy(dst=t[0:{rows}, 0:{columns}], src=x[0:{rows}, 0:{columns}])\n"
        f"    dma_copy(dst=y[0:{rows}, 0:{columns}], src=x[0:{rows}, 0:{columns}])"
        for rows in (1, 7, 9, 16, 17, 64, 127)
    )
    program = parse_program(f"""
program("trn2", "0.6")
def copies(x: float32[128, 512]):
    y = buffer(float32[128, 512], shared_hbm)
    t = buffer(float32[128, 512], sbuf)
{copies}
    return y
""")

    found = played(player, table_of(program), program, target=target)

    assert found == shown(estimate(program, target=target, mode="as_written", skip_periods=False))


def test_several_copies_of_a_buffer_are_played_to_the_tick(player):
    changed = 0
    for seed in range(30):
        program = random_program(seed, "trn2")
        table = table_of(program)
        for name in table["tables"][0]["rotatable"][:1]:

            def track(self: Compiler, buffer: Any, name=name) -> Any:
                self.copies = {name: 2}
                return Compiler._track(self, buffer)

            found = played(player, table, program, copies={name: 2})
            expected = shown(estimated(program, _track=track))
            assert found == expected, seed
            changed += expected != shown(estimated(program))

    assert changed


def test_a_lane_waits_for_readers_on_other_lanes_that_end_before_its_own(player):
    pairs = "".join(READERS.format(columns=columns) for columns in range(128, 512, 16))
    program = parse_program(HEAD + pairs + "    return out\n")

    assert played(player, table_of(program), program) == shown(estimated(program))


HEAD = """program("trn2", "0.6")
def kernel(x: float32[128, 512]):
    out = buffer(float32[128, 512], shared_hbm)
    a = buffer(float32[128, 512], sbuf)
    b = buffer(float32[128, 512], sbuf)
    c = buffer(float32[128, 512], sbuf)
    dma_copy(dst=a[:, :], src=x[:, :])
"""
READERS = """
    tensor_copy(dst=b[:, 0:128], src=a[:, 0:128], engine=gpsimd)
    tensor_copy(dst=c[:, 0:{columns}], src=a[:, 0:{columns}], engine=vector)
    memset(dst=a[:, 0:128], value=0.0, engine=vector)
"""


def test_a_wait_that_is_removed_is_that_of_another_buffer(player):
    program = parse_program(CHAIN.format(read="a"))
    free = parse_program(CHAIN.format(read="b"))
    found = played(player, table_of(program), program, cuts=[[1, 0]])

    assert found["end"] == shown(estimated(free))["end"] < shown(estimated(program))["end"]


CHAIN = """program("trn2", "0.6")
def kernel(x: float32[128, 512]):
    out = buffer(float32[128, 512], shared_hbm)
    a = buffer(float32[128, 512], sbuf)
    b = buffer(float32[128, 512], sbuf)
    c = buffer(float32[128, 512], sbuf)
    dma_copy(dst=a[:, :], src=x[:, :])
    tensor_scalar(dst=c[:, :], data={read}[:, :], operand0=2.0, op0=multiply)
    dma_copy(dst=out[:, :], src=c[:, :])
    return out
"""
