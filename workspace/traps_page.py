"""`python workspace/traps_page.py`: the page of the traps, from their records."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from trap_examples import run

from neuroncore.checks.traps import HEAD, Example, Handling, Trap, known_findings, traps

INTRODUCTION = """\
# Traps

Kernels that give the expected values here, or in another simulator, and not on a device. Each trap
has a record with its source; `nki-run --check traps script.py` reports what a run or a source
decides, `nki-migrate verify` requires that a migrated kernel is free of them. What another check
reports, what the machine rejects and what it models is not reported again.

Certainty is that of the source: *documented* by the vendor, *reported* in public, or *assumed*
where documents are silent or the vendor's library avoids the pattern. The pessimistic reading is
the default: it may report a kernel that works on some device.

A result that documents leave undefined is what this machine computes. With
`--option undefined_results=poison`, or `nki_runtime.use(undefined_results="poison")`, it is NaN
(0xDEADBEEF in integers), so that a comparison with a reference fails here as it does on a device.

The examples run, one after another; they begin with

```python
import nki_runtime

nki_runtime.use(nki="0.6", target="trn2")

{head}```
"""

UNDECIDABLE = """\
## Not decidable here

What nothing that runs on this computer can decide, and why:
"""

KNOWN = """
## Findings on known kernels

The examples of this repository, its generated kernels and the kernels of public libraries that were
run under the check have no findings but these:
"""


def page() -> Iterator[str]:
    """The page, in parts."""
    found = list(traps().values())
    yield INTRODUCTION.format(head=HEAD)
    yield "| trap | | handling | certainty |\n|---|---|---|---|"
    for trap in found:
        link = f"[{trap.id}](#{_anchor(trap)})"
        yield f"| {link} | {trap.title} | {_handling(trap)} | {trap.certainty} |"
    current = Example("", "0.6", "trn2")
    for trap in found:
        yield "\n" + "\n\n".join(_section(trap, current)).rstrip()
        if trap.bad is not None and _is_run(trap):
            current = trap.bad
    yield f"\n{UNDECIDABLE}"
    for trap in found:
        if trap.handling is Handling.UNDECIDABLE:
            yield f"- {trap.id}, {trap.title}: {trap.by}."
    yield KNOWN
    for known in known_findings():
        yield f"- {known.trap}, {known.where}: {known.reason}."


_HANDLING = {
    Handling.DETECTED: "found by `traps`",
    Handling.CHECKED: "found as `{by}`",
    Handling.REJECTED: "rejected with {by}",
    Handling.MODELLED: "modelled, with the values of a device",
    Handling.UNDECIDABLE: "not decidable, {by}",
}


def _anchor(trap: Trap) -> str:
    kept = (c for c in f"{trap.id} {trap.title}".lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def _handling(trap: Trap) -> str:
    by = f": `{trap.by}`" if trap.by and trap.handling is not Handling.UNDECIDABLE else ""
    return f"{trap.handling}{by}"


def _section(trap: Trap, before: Example) -> Iterator[str]:
    yield f"## {trap.id} {trap.title}"
    yield f"Device: {trap.device}."
    yield f"Chips: {trap.chips}. Versions: {trap.versions}."
    yield f"Source: {trap.source} ({trap.certainty})."
    yield f"Here: {_HANDLING[trap.handling].format(by=trap.by)}; decided by {trap.decided}."
    if trap.undefined:
        yield f"Undefined, and NaN under `Options.undefined_results`: {trap.undefined}."
    if trap.bad is not None:
        yield from _example(trap, trap.bad, before)
    yield f"Cure: {trap.cure}."
    if trap.bad is not None and trap.good is not None:
        if trap.good.nki != trap.bad.nki:
            yield f"In NKI {trap.good.nki}:"
        yield _cured(trap.bad, trap.good)


def _is_run(trap: Trap) -> bool:
    return trap.handling is not Handling.REJECTED


def _example(trap: Trap, bad: Example, before: Example) -> Iterator[str]:
    outcome = run(f"{trap.id}.py", bad)
    fence = "python" if _is_run(trap) else f"python (not run: it raises {trap.by})"
    yield f"```{fence}\n{_switch(bad, before) if _is_run(trap) else ''}{bad.text}```"
    if outcome.error is not None:
        yield f"```text\n{outcome.error}\n```"
    label = f"traps[{trap.id}]" if trap.handling is Handling.DETECTED else trap.by
    shown = [finding for finding in outcome.findings if finding.label == label]
    if shown:
        yield f"```text\n{shown[0]}\n```"


def _switch(example: Example, before: Example) -> str:
    """The lines that choose another version or target than the block before."""
    if (example.nki, example.target) == (before.nki, before.target):
        return ""
    if example.nki == "0.1":
        return f'nki_runtime.use("beta1", nki="0.1", target="{example.target}")\n\n'
    imports = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"
    return f'nki_runtime.use(nki="{example.nki}", target="{example.target}")\n\n{imports}\n\n'


def _cured(bad: Example, good: Example) -> str:
    """The good form: what changes, or as a whole where most of it does."""
    old, new = bad.text.splitlines(), good.text.splitlines()
    lines = list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]
    shown = [line for line in lines if not line.startswith("@@")]
    return "```diff\n" + "\n".join(shown) + "\n```"


def main() -> None:
    """Print the page."""
    print("\n".join(page()))


if __name__ == "__main__":
    main()
