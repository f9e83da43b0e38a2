"""Uncertainty of an estimate: an interval, a verdict on its domain, the constants that matter.

The interval is analytic. The critical path says how much of the total each constant takes; relative
to the total that is the sensitivity to it. Its spread follows from its confidence in costs.json.
What remains is the error of the model itself, measured on kernels that were left out of the fit
(benchmarks/model/spread.py): of each toolchain, and of the fixed times of instructions where a
closed compiler decides how many there are. It is more where an instruction is outside of what was
measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, hypot

from neuroncore.instructions import has_guessed_cost
from neuroncore.program import Program
from neuroncore.timeline.compilation.toolchain import CLOSED, toolchain_of
from neuroncore.timeline.model.bars import PASS, TABLE, TRANSFER
from neuroncore.timeline.model.clock import Clock, latency_name
from neuroncore.timeline.playing.sites import Site
from neuroncore.timeline.results.critical_path import PathKey
from neuroncore.timeline.results.transfer_forms import TransferForm, transfer_form
from neuroncore.work import costs

EIGHTY = 1.2816
"""Standard deviations on either side that hold 80 % of a normal distribution."""

MEASURED, EXTRAPOLATED, UNKNOWN = "measured", "extrapolated", "unknown cost"
WIDER = {MEASURED: 0.0, EXTRAPOLATED: 0.3, UNKNOWN: 1.0}
"""The additional spread of the time that instructions of this verdict take, a guess."""

FAR = 4
"""An instruction of so many times the measured sizes, or fewer, is extrapolated."""

INSTRUCTION_COUNT = "instruction count"
"""The error of how many instructions and transfers a closed compiler makes."""

DOCUMENTED = "documented"
"""The confidence of what documents say, also of generations that were not measured."""

RATES = "instruction rates"
"""What a path spends in the data of instructions, whose cycles per element documents give."""
BY_SIZE = "LAUNCH", RATES, "DMA_BANDWIDTH"
"""What the number of instructions does not change."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """The 80 % interval of `launch_ns`, and what it is made of."""

    low_ns: float
    high_ns: float
    domain: dict[str, list[str]]
    """Verdict → instructions, of everything that is executed."""
    sensitivities: dict[str, float]
    """Constant → share of the total that it makes, the largest effect on the interval first."""
    known: float
    """The standard deviation of the logarithm by constants and domain alone."""
    shares: dict[str, float]
    """What the error of the model goes with → its share of the total; of the toolchain, all."""

    @property
    def dominant(self) -> list[str]:
        """The three constants that matter most."""
        return list(self.sensitivities)[:3]


def uncertainty(
    path: Mapping[PathKey, int],
    sites: Sequence[Site],
    clock: Clock,
    launch_ns: float,
    program: Program,
    cores: int = 1,
) -> Uncertainty:
    """Of an estimate with this critical path: what it stays with, and how often."""
    parts: dict[str, float] = {"LAUNCH": clock.values["LAUNCH"]}
    verdicts = {site.number: verdict(site, program.target, cores) for site in sites}
    outside = dict.fromkeys(WIDER, 0.0)
    for (number, kind, ticks), times in path.items():
        path_ns = clock.ns(ticks)
        outside[verdicts[number]] += path_ns * times
        for name, part in _parts(kind, path_ns, sites[number], clock):
            parts[name] = parts.get(name, 0.0) + part * times
    total = launch_ns or 1.0
    table = costs()
    effects = {name: part / total * _spread(name, program.target) for name, part in parts.items()}
    wider = [WIDER[name] * part / total for name, part in outside.items()]
    known = hypot(*effects.values(), *wider)
    shares = _model_shares(toolchain_of(program), parts, total)
    errors = [table["model_error"][name] * share for name, share in shares.items()]
    factor = exp(EIGHTY * hypot(known, *errors))
    ordered = sorted(parts, key=lambda name: -effects[name])
    return Uncertainty(
        launch_ns / factor, launch_ns * factor, _domain(sites, verdicts, cores),
        {name: parts[name] / total for name in ordered}, known, shares,
    )  # fmt: skip


def _domain(sites: Sequence[Site], verdicts: Mapping[int, str], cores: int) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for site in sites:
        name, form = site.call.instruction, transfer_form(site)
        if _is_shared(site, cores):
            name += f" (HBM shared by {cores} cores)"
        elif form is not None and not _is_measured(form):
            name += f" ({form})"
        found.setdefault(verdicts[site.number], {})[name] = None
    return {verdict: list(names) for verdict, names in found.items()}


def _is_shared(site: Site, cores: int) -> bool:
    """Whether other cores take a part of its bandwidth, which no publication shows."""
    return cores > 1 and bool(site.hbm_bytes)


def _model_shares(toolchain: str, parts: Mapping[str, float], total: float) -> dict[str, float]:
    """Of the total, what each error of the model goes with."""
    if toolchain != CLOSED:
        return {toolchain: 1.0}
    fixed = sum(part for name, part in parts.items() if name not in BY_SIZE)
    return {toolchain: 1.0, INSTRUCTION_COUNT: fixed / total}


def verdict(site: Site, target: str, cores: int = 1) -> str:
    """Whether publications show the instruction at about this size, a DMA in this form too, on this
    generation and on so many cores at once.
    """
    table = costs()
    if has_guessed_cost(site.call.record):
        return UNKNOWN
    found = table["measured"].get(site.call.instruction)
    form = transfer_form(site)
    is_seen = target in table["measured_on"] and not _is_shared(site, cores)
    if found is None or not is_seen or (form is not None and not _is_measured(form)):
        return EXTRAPOLATED
    return MEASURED if _is_near(site.elements, found) else EXTRAPOLATED


def _is_measured(form: TransferForm) -> bool:
    """Whether publications show transfers of this form with about this run of bytes."""
    found = costs()["measured_transfers"].get(form.kind)
    return found is not None and _is_near(form.run_bytes, found)


def _is_near(size: float, measured: Sequence[float]) -> bool:
    least, most = measured
    return least / FAR <= size <= most * FAR


def _spread(name: str, target: str) -> float:
    """Of what was measured on other generations alone, the one of what is assumed."""
    table = costs()
    row = table["constants"].get(name)
    confidence = row["confidence"] if row else DOCUMENTED
    is_taken_over = confidence != DOCUMENTED and target not in table["measured_on"]
    return table["spread"]["assumed" if is_taken_over else confidence]


def _parts(kind: int, path_ns: float, site: Site, clock: Clock) -> Iterator[tuple[str, float]]:
    """Which constants the path's stay with a bar goes to; fixed times first, data last."""
    values, left = clock.values, path_ns
    names: tuple[tuple[str, float], ...] = ()
    rest = "ACT_TABLE_LOAD" if kind == TABLE else RATES
    if kind == TRANSFER:
        fixed = site.begins, "DMA_COMPLETION", "DMA_TO_CONSUMER"
        names, rest = tuple((name, values[name]) for name in fixed), "DMA_BANDWIDTH"
    elif kind == PASS:
        access = clock.ns(clock.cycles(site.lane, values["ACCESS_OVERHEAD"]))
        waits = clock.ns(clock.latency(site.lane))
        names = ("ACCESS_OVERHEAD", access), (latency_name(site.lane), waits)
    for name, most in names:
        part = min(left, most)
        left -= part
        yield name, part
    yield rest, left
