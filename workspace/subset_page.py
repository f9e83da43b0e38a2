"""The rules of `subset` as a table, for docs/checks.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from neuroncore.checks.subset.rules import RULES, Verdict


def table() -> Iterator[str]:
    """Lines of Markdown, one per rule."""
    yield "| code | construct | parser | tracer | 0.1 |"
    yield "|---|---|---|---|---|"
    for rule in RULES.values():
        said = (_words(verdict) for verdict in (rule.parser, rule.tracer, rule.beta1))
        construct = rule.construct.replace("|", "\\|")
        yield f"| {rule.code} | {construct} | {' | '.join(said)} |"


def _words(verdict: Verdict) -> str:
    if isinstance(verdict, Mapping):
        return ", ".join(f"{severity or 'accepted'} from {v}" for v, severity in verdict.items())
    return verdict or ""


if __name__ == "__main__":
    print("\n".join(table()))
