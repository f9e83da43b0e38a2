"""Rules: an id, a page, examples that run as tests, and hooks.

`nki1226.toml` is the rule NKI1226: its title and page, its examples, and the reasons and names of
the engine that it takes under its id. `HOOKS` of a module beside it is what the rule does itself:
of `nki1226_<subject>.py` its own, of a module of several rules (`elementwise.py`) those by id.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, Literal

from neuroncore.findings import Finding, Safety
from nki_migrate.rewriting.context.call_site import Method, Rewrite
from nki_migrate.rewriting.context.reasons import Reason
from nki_migrate.rules.site import Site
from nki_migrate.settings.request import VERSIONS, Request

_NOTHING: Mapping[str, Rewrite] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a rule.

    `check` makes a *span rule*: for each node of the classes in `nodes`, in source order,
    `check(node, site)` yields findings whose edits replace spans of characters. Renames, keywords,
    decorators, imports; all rules of the steps after 0.2 are of this kind.

    `calls` and `methods` make a *rewriting rule* of the step 0.1 to 0.2: a canonical name
    ("nl.load", "nisa.nc_matmul") or a tile's method, and the function that rewrites such a call in
    destination-passing form. `message` is the text for a call of a name that the rule only reports.
    """

    nodes: tuple[type[ast.AST], ...] = ()
    check: Callable[[Any, Site], Iterable[Finding]] | None = None
    calls: Mapping[str, Rewrite] = field(default_factory=lambda: _NOTHING)
    methods: Mapping[str, Method] = field(default_factory=lambda: _NOTHING)
    message: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A file before and after one step, as whole module texts.

    An example of a manual rule shows the TODO in `good`. `target` runs further steps than the
    rule's own.
    """

    bad: str
    good: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One migration rule.

    `klass` is the class of the rule catalogue: (a) syntax alone, (b) needs facts, (c) can only
    report. `page` is Markdown: old form, new form, why, the trap. `reasons` and `names` of the
    engine are reported under the rule's id. `source` is the document that names the difference, for
    rules outside of the catalogue. `native`: the rule is about code that people wrote for
    the step's first version, not about what an earlier step wrote. `keeps`: it documents what
    stays, and reports nothing. `deprecated`: the old form still means the same in the version
    after the step. `optional`: a suggestion, made where its id is selected. `ambiguous`: what it
    finds is as common in later versions, and identifies none. `lifted`: the newest version takes
    the old form again. `changes` are the rows of
    `neuroncore.surface.meaning_changes` that it rewrites or reports.
    """

    id: str
    klass: Literal["a", "b", "c"]
    safety: Safety
    title: str
    page: str
    file: Traversable
    reasons: tuple[Reason, ...]
    names: tuple[str, ...]
    source: str
    native: bool
    keeps: bool
    deprecated: bool
    optional: bool
    ambiguous: bool
    lifted: bool
    changes: tuple[str, ...]
    hooks: Hooks

    @property
    def examples(self) -> tuple[Example, ...]:
        """The examples of the data file, which only tests and documents need."""
        data = tomllib.loads(self.file.read_text(encoding="utf-8"))
        return (
            *(_example(e, _kernel) for e in data.get("kernels", ())),
            *(_example(e, _function) for e in data.get("functions", ())),
            *(_example(e, lambda text, *_: text) for e in data.get("files", ())),
        )

    @property
    def step(self) -> tuple[str, str]:
        """The versions before and after: the first digit of the id counts the steps."""
        place = int(self.id[len("NKI")])
        return VERSIONS[place - 1], VERSIONS[place]

    @property
    def is_valid_later(self) -> bool:
        """Whether later versions take the old form, too."""
        return self.lifted or bool(self.changes)

    def is_chosen(self, request: Request) -> bool:
        """Whether a run takes the rule: an optional one only where its own id is selected."""
        named = (*request.select, *request.extend_select)
        return request.selects(self.id) and (not self.optional or self.id in named)


def read_rule(file: Traversable, hooks: Mapping[str, Hooks]) -> Rule:
    """The rule of a data file `nki1226.toml`, with the hooks of its id."""
    own, _, _ = file.read_text(encoding="utf-8").partition("\n[[")  # examples are tables behind it
    data = tomllib.loads(own)
    rule_id = file.name.removesuffix(".toml").upper()
    klass = data["class"]
    return Rule(
        id=rule_id,
        klass=klass,
        safety=Safety(data.get("safety", "manual" if klass == "c" else "safe")),
        title=data["title"],
        page=data["page"],
        file=file,
        reasons=tuple(map(Reason, data.get("reasons", ()))),
        names=tuple(data.get("names", ())),
        source=data.get("source", ""),
        native=data.get("native", False),
        keeps=data.get("keeps", False),
        deprecated=data.get("deprecated", False),
        optional=data.get("optional", False),
        ambiguous=data.get("ambiguous", False),
        lifted=data.get("lifted", False),
        changes=tuple(data.get("changes", ())),
        hooks=hooks.get(rule_id, Hooks()),
    )


def _example(data: Mapping[str, str], module: Callable[[str, str, str], str]) -> Example:
    """`old` and `new` of the data as modules; `new` is `old` where it is left out."""
    parameters, new = data.get("parameters", "x"), data.get("new", data["old"])
    old = module(data["old"], parameters, "neuronxcc.")
    return Example(old, module(new, parameters, ""), data.get("target"))


def _kernel(body: str, parameters: str, namespace: str) -> str:
    """The module of a kernel body of the step 0.1 to 0.2, with its imports and signature."""
    nki = f"import {namespace}nki as nki" if namespace else "import nki"
    imports = [nki, *(f"import {namespace}nki.{m}" for m in ("isa as nisa", "language as nl"))]
    if "np." in body:
        imports.append("import numpy as np")
    text = textwrap.indent(body.strip("\n"), "    ")
    return "\n".join([*imports, "", "", "@nki.jit", f"def kernel({parameters}):", text, ""])


def _function(text: str, *_: str) -> str:
    """The module of a kernel of a later step, with the imports that it needs."""
    names = [("isa", "nisa"), ("language", "nl")]
    modules = [f"import nki.{module} as {name}" for module, name in names if f"{name}." in text]
    return "\n".join(["import nki", *modules, "", "@nki.jit", text])
