"""The rules: each frontend's verdict on each construct of Python, with its source.

The *parser* frontend (0.2 to 0.6, selectable in 0.7) compiles a subset of Python from its source.
The *tracer* frontend (0.7, selectable from 0.4 on) runs the function, so that Python works. Up to
0.6 the documents state the subset for it, too. 0.1 traced with symbolic indices and has
restrictions of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from neuroncore.options import Options
from neuroncore.surface import version_tuple

Severity = Literal["error", "warning"]
Frontend = Literal["parser", "tracer", "beta1"]
Verdict = Severity | Mapping[str, Severity | None] | None
"""One severity for every version of a frontend, or by the first version it holds for."""

UP_TO_0_6: Verdict = {"0.4": "warning", "0.7": None}
"""Of the tracer: documents restrict the language up to 0.6, and 0.7 promises all of Python [NKI 0.7
release notes; announcement of the change of specialization]."""

KLR = "KLR, the open source of the parser frontend"
LANGUAGE = "NKI language guide: supported Python"
FROM_0_3 = "NKI 0.3 migration guide"
SCALARS = "NKI 0.7: NkiScalar"


@dataclass(frozen=True, slots=True)
class SubsetRule:
    """One construct. `message` may hold `{what}`: the text of the source."""

    code: str
    construct: str
    message: str
    hint: str
    source: str
    parser: Verdict = "error"
    tracer: Verdict = field(default_factory=lambda: UP_TO_0_6)
    beta1: Verdict = None
    once: bool = False
    """Whether one finding per file and name is enough."""
    choice: Callable[[Options], Literal["warn", "error", "ignore"]] | None = None
    """The option that decides where documents disagree."""

    def verdict(self, frontend: Frontend) -> Verdict:
        """That frontend's verdict, over all versions."""
        return {"parser": self.parser, "tracer": self.tracer, "beta1": self.beta1}[frontend]

    def severity(
        self, frontend: Frontend, nki: str, options: Options | None = None
    ) -> Severity | None:
        """The severity for that frontend of that version; None where it accepts."""
        verdict = self.verdict(frontend)
        if isinstance(verdict, Mapping):
            reached = [v for v in verdict if version_tuple(v) <= version_tuple(nki)]
            verdict = verdict[max(reached, key=version_tuple)] if reached else None
        if verdict is None or self.choice is None or options is None:
            return verdict
        return _CHOSEN[self.choice(options)]


_CHOSEN: Mapping[str, Severity | None] = {"warn": "warning", "error": "error", "ignore": None}

_DISPUTED: Verdict = {"0.3": "warning"}

_TABLE = (
    # -- functions and classes
    SubsetRule("nested-definition", "nested `def`, nested `class`, `lambda`",
         "{what} inside a kernel", "define it at module level", KLR),
    SubsetRule("nested-body", "a nested `def` that `nl.fori_loop` or `nl.while_loop` runs",
         "{what} inside a kernel: the guide of the loops nests it, the parser reads none",
         "define it at module level", f"{KLR}; NKI 0.6: nl.fori_loop, its example",
         parser="warning", tracer=None),
    SubsetRule("star-parameter", "`*args` parameter",
         "parameter *{what}", "name the parameters, or take one tuple", KLR),
    SubsetRule("double-star-parameter", "`**kwargs` parameter",
         "parameter **{what} has to stay empty", "name the parameters", KLR, parser="warning"),
    SubsetRule("keyword-only", "keyword-only parameters (`*`)",
         "keyword-only parameter {what}: works in 0.2, documented as unsupported from 0.3 on",
         "drop the `*` from the signature", FROM_0_3,
         parser=_DISPUTED),
    SubsetRule("decorator", "decorators other than nki.jit, dataclass, staticmethod",
         "decorator {what}", "only nki.jit, dataclass and staticmethod are read",
         f"{KLR}; {FROM_0_3}"),
    SubsetRule("nested-kernel", "a kernel that calls a kernel decorated with nki.jit",
         "{what} carries nki.jit and is called from a kernel",
         "remove the decorator, or decorate where it is launched",
         f"{KLR}; NKI 0.2 migration guide: sub-kernels carry no decorator (nki-library of 0.3 "
         "does it)", parser={"0.2": "error", "0.3": "warning"}, tracer=None),
    SubsetRule("class-base", "classes that do not inherit from NKIObject or Enum alone",
         "class {what}", "inherit from nl.NKIObject or Enum, and from nothing else",
         f"{KLR}; NKI language guide: user classes"),
    SubsetRule("class-body", "statements in a class other than fields and methods",
         "{what} in a class", "only fields and methods are read", f"{KLR}; NKI language guide"),
    SubsetRule("super-or-property", "`super`, properties",
         "{what}", "call the function by name; make the property a method",
         "not among what the NKI language guide lists"),
    # -- statements
    SubsetRule("statement",
         "`try`, `raise`, `del`, `global`, `nonlocal`, `import`, `match`, `async`, `type`",
         "{what} statement", "do it outside the kernel; checks may be `assert`", KLR),
    SubsetRule("loop-else", "`for … else`, `while … else`",
         "`else` of a {what} loop", "set a flag in the loop and test it afterwards", KLR),
    SubsetRule("loop-target", "`for a, b in …`",
         "a loop target that is not one name", "loop over indices and unpack in the body", KLR),
    SubsetRule("with", "`with` other than `nl.no_reorder()`",
         "with {what}", "only `with nl.no_reorder():` is known", KLR),
    SubsetRule("dynamic-loop-exit", "`break`, `continue`, `return` in a dynamic loop",
         "{what} in the body of a dynamic loop",
         "the loop runs on the device: let it run to its end",
         KLR),
    SubsetRule("dynamic-index-write", "assignment to the index of a dynamic loop",
         "{what} is the index of a dynamic loop", "compute with another register",
         "NKI 0.4: dynamic_range, a frozen register", parser={"0.4": "error"},
         tracer={"0.4": "error", "0.7": None}),
    SubsetRule("nested-dynamic-loop", "a dynamic loop in the body of another one, before 0.6",
         "{what} in the body of a dynamic loop: nested ones fail before 0.6",
         "make the inner loop a range that unrolls", "NKI 0.6: dynamic_range, known issues before",
         parser={"0.2": "error", "0.6": None}, tracer={"0.4": "error", "0.6": None}),
    SubsetRule("body-tensor", "a tensor used outside the body of the dynamic loop that made it",
         "{what} was made in the body of a dynamic loop, which has ended",
         "make it before the loop and write it in the body",
         "NKI 0.6: loops on the device, tensors declared in the body are not visible outside (no "
         "document of an earlier version says it)",
         parser={"0.2": "warning", "0.6": "error"},
         tracer={"0.4": "warning", "0.6": "error", "0.7": None}),
    SubsetRule("dynamic-range", "`nl.dynamic_range`, removed in 0.7",
         "nl.dynamic_range is removed", "nl.fori_loop with the body as a function: nki-migrate "
         "fix --to 0.7 writes it", "NKI 0.7 migration guide: loops on the device",
         parser={"0.7": "error"}, tracer={"0.7": "error"}),
    # -- expressions
    SubsetRule("expression", "comprehensions, generators, set literals, `:=`, `await`, `yield`",
         "{what}", "write a loop or a list", KLR),
    SubsetRule("starred", "`[*xs]`, `a, *b = …`", "starred expression", "name the elements", KLR),
    SubsetRule("call-unpacking", "`f(*xs)`, `f(**kw)`",
         "call with {what}", "pass the arguments one by one", KLR),
    SubsetRule("matmul-operator", "the operator `@`", "the operator @", "call nisa.nc_matmul", KLR),
    SubsetRule("constant", "constants other than None, bool, int, float, str",
         "a {what} constant", "None, bool, int, float and str are known", KLR),
    SubsetRule("dict-key", "dict keys that are not string literals",
         "a dict key that is not a string literal", "use strings, or a list", KLR),
    SubsetRule("format-spec", "f-strings with a format spec",
         "format spec in an f-string", "print the bare value; !s, !r and !a are known", KLR),
    SubsetRule("identity", "`is`, `is not`",
         "`{what}`: documented as unsupported from 0.3 on; the parser rewrites it to a "
         "comparison, and the vendor's own 0.3 library uses it",
         "write == or !=", f"{FROM_0_3}; {KLR}", parser=_DISPUTED,
         choice=lambda options: options.identity_test),
    SubsetRule("is-not-none", "`is`, `is not` on other values than None, in 0.2",
         "`{what}` is read as a comparison with ==", "write == or !=", KLR,
         parser={"0.2": "warning", "0.3": None}, tracer=None),
    SubsetRule("membership", "`in`, `not in` on a dict",
         "`{what}` on a dict", "compare with the keys in a loop",
         f"{KLR}; nki-library works around it"),
    # -- values
    SubsetRule("list-argument", "list kernel arguments",
         "{what} is a list, which is not a kernel argument from 0.3 on", "pass a tuple", FROM_0_3,
         parser={"0.3": "error"}),
    SubsetRule("numpy-dtype", "numpy dtypes as arguments",
         "{what} as an argument", "use the dtype of nki.language",
         f"{KLR}; NKI 0.7 documents its own dtypes alone", tracer="warning"),
    SubsetRule("wide-int", "ints outside 32 bits",
         "{what} does not fit 32 bits", "keep constants between -2**31 and 2**31 - 1", KLR),
    SubsetRule("string-operation", "string subscripts and methods",
         "{what} of a string", "prepare the string outside the kernel", KLR),
    SubsetRule("builtin", "builtins the parser does not know",
         "builtin {what} is not known", "write a loop, or compute it outside the kernel", KLR),
    SubsetRule("range-value", "`range` that is not a loop's iterator",
         "range outside the head of a for loop", "write a list", KLR),
    SubsetRule("math-function", "names of math the parser does not know",
         "math.{what} is not known",
         "known are ceil floor gcd log2 log10 pow sqrt and pi e inf nan", KLR),
    SubsetRule("min-max", "min, max of more than two values",
         "{what} takes two numbers or one sequence", "nest the calls", KLR),
    SubsetRule("method", "methods of lists and dicts that the parser does not know",
         "{what} is not known", "lists have append clear copy count extend index pop remove "
         "reverse; dicts have clear copy get items keys pop setdefault values", KLR),
    SubsetRule("method-differs", "`list.count`, `list.index`, `list.remove`",
         "{what}", "write a loop", KLR, parser="warning", tracer=None),
    # -- tensors, registers, names
    SubsetRule("old-namespace", "`neuronxcc.*` names",
         "{what} is of the package of 0.1", "import it from nki",
         f"NKI 0.4 release notes; {KLR}", tracer="error", once=True),
    SubsetRule("mask", "`mask=`", "mask parameter is not supported",
         "clamp the slices with min()", KLR, tracer="error"),
    SubsetRule("tensor-arithmetic", "arithmetic and order (`+`, `>`) on tensors",
         "{what} on a tensor", "call nki.isa with a destination", f"{KLR}; {LANGUAGE}",
         tracer="error"),
    SubsetRule("tensor-assignment", "assignment to elements of a tensor",
         "assignment to elements of a tensor", "copy with nisa.tensor_copy or nisa.dma_copy",
         KLR, tracer="error"),
    SubsetRule("register-branch",
         "`if`, `int()`, `range()`, an index on a register or a scalar of the device",
         "{what} on a value of the device", "branch on values known when the kernel is compiled",
         f"NKI 0.6: registers; {KLR} compiles `if` to a branch, the guides show only loops; "
         f"{SCALARS}", parser="warning", tracer="error"),
    SubsetRule("register-while", "`while` on a register or a scalar of the device",
         "while on a value of the device: documented up to 0.5, deprecated in 0.6, removed in 0.7",
         "nl.while_loop, from 0.6 on", "NKI 0.6: registers, while_loop; NKI 0.7 migration guide",
         parser={"0.2": None, "0.6": "warning", "0.7": "error"},
         tracer={"0.4": "warning", "0.6": "error"}),
    # -- 0.1
    SubsetRule("index-condition", "0.1: Python control flow on an index",
         "{what} depends on an index, which is a symbol", "use a mask, or nl.static_range",
         "NKI 0.1: control flow", parser=None, tracer=None, beta1="error"),
    SubsetRule("sequential-condition", "0.1: Python control flow on the index of a sequential loop",
         "{what} depends on the index of a sequential loop: documented as a symbol, and public "
         "kernels branch on it", "use a mask, or nl.static_range",
         "NKI 0.1: control flow; nki-samples", parser=None, tracer=None, beta1="warning"),
    SubsetRule("tensor-scope", "0.1: a tensor used outside the loop that made it",
         "{what} was made in a loop that has ended",
         "make it before the loop and write to it there",
         "NKI 0.1: tensors are scoped to their block", parser=None, tracer=None, beta1="error"),
    SubsetRule("parameter-write", "0.1: a store to a parameter",
         "{what} is a parameter, which is read-only", "return a new tensor, or annotate it with "
         "nt.mutable_tensor and return it",
         "NKI 0.1: kernel parameters", parser=None, tracer=None, beta1="error"),
    SubsetRule("nested-output", "0.1: `shared_hbm` in a loop",
         "a tensor in shared_hbm is made in a loop", "make it at the top of the kernel",
         "NKI 0.1: shared_hbm", parser=None, tracer=None, beta1="error"),
    SubsetRule("syntax", "text that is not Python", "not Python: {what}", "mend the text", "Python",
         tracer="error", beta1="error"),
)  # fmt: skip

RULES: Mapping[str, SubsetRule] = {rule.code: rule for rule in _TABLE}
"""Every rule by its code."""


def frontend_of(nki: str) -> Frontend:
    """The frontend that a version compiles with where no other is selected."""
    if nki == "0.1":
        return "beta1"
    return "parser" if version_tuple(nki) < (0, 7) else "tracer"


def frontends_of(nki: str) -> tuple[Frontend, ...]:
    """The frontends that can be selected in a version, its own first."""
    own = frontend_of(nki)
    if own == "beta1" or version_tuple(nki) < (0, 4):
        return (own,)
    return (own, "parser" if own == "tracer" else "tracer")
