"""Kernels: functions that run on the machine when they are called with arrays."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import LaunchError, MemorySpaceError, SignatureError, UnsupportedError
from neuroncore.instructions import KernelWarning
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import RUNNING, execute
from neuroncore.machine.observe import Watcher, watching
from neuroncore.memory import IndexRules, View
from neuroncore.notes import note_without_effect
from neuroncore.options import Options
from neuroncore.spec import as_dtype
from neuroncore.surface import version_tuple
from neuroncore.targets import resolve_target
from nki_beta2.kernel.configuration import (
    CompileConfig,
    Configuration,
    SpecializationConfig,
    check_nested,
    launch_degree,
)
from nki_beta2.kernel.schedule import Edges, Scheduled, edges_of
from nki_beta2.kernel.tensor import tensor_class

_TWO_FRONTENDS_SINCE = (0, 4)
_WITHOUT_EFFECT = "it is for the compiler of a device, its files and its messages"
_LAUNCHED: ContextVar[Kernel | None] = ContextVar("nki_beta2.launched", default=None)
"""The kernel that is launched, whose configuration holds for the kernels that it calls."""
_LAUNCH_RULE = "NKI: kernel[lnc], the number of logical cores"


TRACED_SINCE = (0, 7)
"""From here on Python runs a kernel while it is specialized, the body of a device loop once."""


@dataclass(frozen=True, slots=True)
class Language:
    """One version of the language under one choice."""

    choice: Choice
    is_targeted: bool = False
    """Whether the kernel names its target, so that the switch does not."""

    @property
    def name(self) -> str:
        return self.choice.backend

    @property
    def version(self) -> tuple[int, int]:
        return version_tuple(self.choice.nki)

    def in_force(self) -> Language:
        """This version under the target and options that the switch has set, if it has any."""
        current = CURRENT.get()
        if current is None or current.backend != self.name:
            return self
        target = self.choice.target if self.is_targeted else current.target
        choice = Choice(self.name, self.choice.nki, target, current.options)
        return Language(choice, self.is_targeted)

    def of_frontend(self) -> Language:
        """The same language under Options.frontend: a tracer takes no register as a condition."""
        if self.choice.options.frontend != "tracer" or self.version >= TRACED_SINCE:
            return self
        options = replace(self.choice.options, register_control="tracer")
        return Language(replace(self.choice, options=options), self.is_targeted)

    def core(self, *more: Watcher) -> NeuronCore:
        """A fresh core for one launch, with the watchers in force and `more`."""
        choice = self.choice
        _check_generation(choice)
        return NeuronCore(
            choice.target, choice.options, index_rules(self.version, choice.options),
            (*watching(), *more), tensor_class(choice.nki),
        )  # fmt: skip


def _check_generation(choice: Choice) -> None:
    """trn1 and inf2 under 0.2 and later, as Options.trn1_support says."""
    target, support = resolve_target(choice.target), choice.options.trn1_support
    if support == "run" or target.generation > 2:
        return
    what = f"NKI {choice.nki} on {target.name}, which the FAQ does not list"
    if support == "warn":
        warnings.warn(f"{what}; it lists Trn2 and Trn3", KernelWarning, stacklevel=5)
        return
    raise LaunchError(
        what, expected="trn2 or trn3", got=target.name, hint="choose the target with use(target=…)",
        rule="NKI FAQ: supported instances",
    )  # fmt: skip


def index_rules(version: tuple[int, int], options: Options) -> IndexRules:
    """How this version indexes; explicit options beat the version."""
    negative = (
        version >= (0, 6)
        if options.negative_index == "version"
        else (options.negative_index == "allow")
    )
    on_view = options.ap_offset
    if on_view == "version":
        on_view = "compose" if version >= (0, 5) else "reject"
    # The parser frontend lists the slices that it rejects, and empty ones are not among them; the
    # public library makes some on a core without rows. From 0.4: start < end [stubs].
    empty = version <= (0, 3)
    return IndexRules(
        options.partition_index == "keep", negative, on_view, empty,
        takes_64_bits=version >= TRACED_SINCE,
    )  # fmt: skip


class Kernel:
    """A function decorated with nki.jit.

    Called with NumPy arrays it runs on the simulated machine; `kernel[lnc](…)` runs it on that many
    logical cores, one after the other.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        language: Language,
        lnc: int | None = None,
        edges: Edges | None = None,
        configuration: Configuration = Configuration(),  # noqa: B008 - frozen
    ) -> None:
        functools.update_wrapper(self, function)
        self.__name__ = getattr(function, "__name__", repr(function))
        self.function = function
        self.language = language
        self.lnc = lnc
        self.edges = edges or {}
        self.configuration = configuration

    @property
    def func(self) -> Callable[..., Any]:
        """The function, under the name of jit's parameter up to 0.3."""
        return self.function

    @property
    def choice(self) -> Choice:
        """The choice that was in force when the kernel was decorated."""
        return self.language.choice

    def under(self, language: Language) -> Kernel:
        """The same kernel bound to a language, independent of the switch."""
        return self._with(_Bound, language=language)

    def _with(self, kind: type[Kernel] | None = None, **changes: Any) -> Kernel:
        """The same kernel with other attributes."""
        made = object.__new__(kind or type(self))
        vars(made).update(vars(self) | changes)
        return made

    def __getitem__(self, lnc: Any) -> Kernel:
        return self._with(lnc=_cores(lnc))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if RUNNING.get() is not None:
            return self._inline(args, kwargs)
        return self._launch(self.language.in_force(), args, kwargs)

    def _launch(self, language: Language, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check_arguments(language, args, kwargs)
        if language.version >= _TWO_FRONTENDS_SINCE:
            language = language.of_frontend()
        if language.version >= TRACED_SINCE:
            self.configuration.check(self.__name__, language.choice.options, os.environ)
            return self._with(lnc=launch_degree(self.__name__, self.lnc, os.environ))._execute(
                language, args, kwargs
            )
        return self._execute(language, args, kwargs)

    def _execute(self, language: Language, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        token = _LAUNCHED.set(self)
        try:
            return execute(
                self.function,
                language.core(*([Scheduled(self.edges)] if self.edges else ())),
                args,
                kwargs,
                programs=[(i,) for i in range(self.lnc or 1)],
                grid=() if self.lnc is None else (self.lnc,),
                cores=self.lnc or 1,
                check_result=functools.partial(_check_result, language, self.__name__),
            )
        finally:
            _LAUNCHED.reset(token)

    def _check_arguments(
        self, language: Language, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        try:
            bound = inspect.signature(self.function).bind(*args, **kwargs)
        except TypeError as wrong:
            raise LaunchError(
                f"kernel {self.__name__}: {wrong}",
                expected=f"{self.__name__}{inspect.signature(self.function)}",
                got=f"{len(args)} by position" + "".join(f", {name}=" for name in kwargs),
            ) from None
        for position, (name, value) in enumerate(bound.arguments.items()):
            _check_argument(language, name, position, value)

    def _inline(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.language.version <= (0, 3):
            note_without_effect(
                f"@nki.jit of {self.__name__}, which a kernel calls",
                "it is part of that kernel, as a plain function",
                "NKI 0.2 migration guide: sub-kernels carry no decorator",
            )
        if self.language.version >= TRACED_SINCE:
            top = _LAUNCHED.get()
            if top is not None:
                check_nested(
                    (self.__name__, self.configuration, self.lnc),
                    (top.__name__, top.configuration, top.lnc),
                )
        if self.edges:
            raise UnsupportedError(
                f"kernel {self.__name__} has scheduling edges and is called from a kernel",
                hint="give the edges to the kernel that is launched", rule="NKI: with_schedule",
            )  # fmt: skip
        return self.function(*args, **kwargs)

    def with_schedule(self, edges: Any) -> Kernel:
        """The kernel whose instructions run after others by name: [(name, name or names)].

        Each launch raises AttributeValueError for an edge against program order, LaunchError for a
        name that no instruction or more than one has.
        Raises SignatureError for edges that are not pairs of names.
        """
        found = {**self.edges}
        for after, befores in edges_of(edges).items():
            found[after] = (*found.get(after, ()), *befores)
        return self._with(edges=found)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}, NKI {self.choice.nki}>"


class _Bound(Kernel):
    """A kernel with a fixed choice."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._launch(self.language, args, kwargs)


def make_jit(language: Language) -> Callable[..., Any]:
    """`nki.jit` of this version."""

    def jit(fn: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
        """Make a kernel of a function; usable as @nki.jit and @nki.jit(…).

        `platform_target` is the device that the kernel is compiled for, and an error from 0.3 on.
        Further keywords are for the compiler and change nothing here.
        """
        _check_jit_options(language, kwargs)
        if fn is None:
            return lambda function: jit(function, **kwargs)
        if not callable(fn):
            raise LaunchError(
                f"nki.jit of a {type(fn).__name__}", expected="a function, or options by name",
                got=repr(fn), rule=f"NKI {language.choice.nki}: nki.jit",
            )  # fmt: skip
        return fn if isinstance(fn, Kernel) else Kernel(fn, _target_of(language, kwargs))

    def of_func(func: Callable[..., Any] | None = None, mode: str = "auto", **kwargs: Any) -> Any:
        return jit(func, **(kwargs if mode == "auto" else {"mode": mode} | kwargs))

    of_func.__name__, of_func.__doc__ = "jit", jit.__doc__
    return of_func if language.version <= (0, 3) else jit


def make_traced_jit(language: Language) -> Callable[..., Any]:
    """`nki.jit` from 0.7 on, which takes configurations."""
    plain = make_jit(language)

    def jit(
        fn: Callable[..., Any] | None = None,
        *,
        compile_config: CompileConfig | None = None,
        specialization_config: SpecializationConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Make a kernel of a function; usable as @nki.jit and @nki.jit(…).

        The configurations are classes of nki.compiler. Further keywords are for the compiler and
        change nothing here.
        """
        configuration = Configuration.given(compile_config, specialization_config)

        def configured(function: Any) -> Kernel:
            made = plain(function, **kwargs)
            is_given = configuration != Configuration()
            return made._with(configuration=configuration) if is_given else made

        if fn is not None:
            return configured(fn)
        plain(**kwargs)  # what it rejects, it rejects before there is a function
        return configured

    return jit


def _check_jit_options(language: Language, options: dict[str, Any]) -> None:
    """Further keywords are documented as **kwargs and change nothing here, with two exceptions."""
    rule = f"NKI {language.choice.nki}: nki.jit(**kwargs)"
    for name, value in options.items():
        if name == "platform_target" and language.version >= (0, 3):
            raise UnsupportedError(
                f"nki.jit({name}={value!r}) is an error from 0.3 on",
                expected="nki.jit without a target", got=f"{name}={value!r}", operand=name,
                hint="choose the target with NEURON_PLATFORM_TARGET_OVERRIDE or use(target=…)",
                rule=f"NKI {language.choice.nki}: nki.jit",
            )  # fmt: skip
        if name == "func":
            raise SignatureError(
                "nki.jit has no parameter func from 0.4 on", expected="nki.jit(fn)", got="func=",
                hint="give the function by position", operand=name, rule=rule,
            )  # fmt: skip
        if name != "platform_target":
            note_without_effect(f"nki.jit({name}={value!r})", _WITHOUT_EFFECT, rule)


def _target_of(language: Language, options: dict[str, Any]) -> Language:
    """`platform_target=` up to 0.2 says for which device the kernel is compiled."""
    target = options.get("platform_target")
    if target is None:
        return language
    choice = replace(language.choice, target=resolve_target(target).name)
    return Language(choice, is_targeted=True)


def _cores(lnc: Any) -> int:
    if isinstance(lnc, tuple) and len(lnc) == 1:
        lnc = lnc[0]
    if isinstance(lnc, (int, np.integer)) and not isinstance(lnc, bool) and lnc in (1, 2):
        return int(lnc)
    raise LaunchError(
        f"kernel[{lnc!r}]",
        expected="the LNC degree: 1 or 2",
        got=repr(lnc),
        hint="SPMD grids ended with 0.1: make the grid a loop in the kernel",
        rule=_LAUNCH_RULE,
    )


def _check_result(language: Language, kernel: str, view: View) -> None:
    """Returned tensors live in shared HBM (0.2: any HBM); arguments may be returned too."""
    space = view.spec.space
    legal = {MemorySpace.shared_hbm, MemorySpace.hbm}  # only arguments are in plain hbm
    if language.version < (0, 3):
        legal.add(MemorySpace.private_hbm)
    if space not in legal:
        raise MemorySpaceError(
            f"kernel {kernel} returns a tensor in {space.name.upper()}",
            expected="a tensor made with buffer=nl.shared_hbm",
            got=repr(view),
            hint="copy the result there with nisa.dma_copy and return that tensor",
            rule="NKI 0.3 migration guide: kernel outputs are shared_hbm",
        )


def _check_argument(language: Language, name: str, position: int, value: Any) -> None:
    """Raise LaunchError for an argument that no kernel takes."""
    module = type(value).__module__.partition(".")[0]
    if module in ("torch", "jax", "jaxlib"):
        raise LaunchError(
            f"argument {name} is a {module} array",
            expected="a NumPy array",
            got=f"{type(value).__module__}.{type(value).__qualname__}",
            hint=f"nki_runtime.simulate(kernel)(…) takes {module} arrays and gives them back",
            operand=name,
            position=position,
        )
    if type(value) is list and (0, 3) <= language.version < (0, 7):
        raise LaunchError(
            f"argument {name} is a list",
            expected="a tuple",
            got=f"a list of {len(value)}",
            operand=name,
            position=position,
            rule="NKI 0.3 migration guide: no list arguments",
        )
    if isinstance(value, np.ndarray):
        as_dtype(value.dtype, name, position, takes_64_bits=language.version >= TRACED_SINCE)
