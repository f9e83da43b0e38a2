"""Errors in kernels, one class per kind of mistake.

An error reads, in this order: where (the kernel's line) and what is wrong, the line with a caret,
what was expected and what came, what to do, and which documented rule says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neuroncore.findings.finding import Finding, rendered
from neuroncore.source_location import OUR_PACKAGES as OUR_PACKAGES
from neuroncore.source_location import Place, find_place
from neuroncore.source_location import place_of as place_of


class KernelError(Exception):
    """A mistake in the user's kernel or call; the base of all errors that a user can cause.

    `what` is the one-line statement; the other parts are optional and are rendered when present.
    `operand` is the argument at fault: the caret is put under it. `position` finds it where the
    call gives it without a name.
    The place is found when the error is made: the innermost frame that is not ours.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
        rule: str | None = None,
        operand: str | None = None,
        instruction: str | None = None,
        position: int | None = None,
        place: Place | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.expected = expected
        self.got = got
        self.hint = hint
        self.rule = rule
        self.operand = operand
        self.instruction = instruction
        self.position = position
        self.place = place if place is not None else find_place()

    def __str__(self) -> str:
        head = f"{self.instruction}: {self.what}" if self.instruction else self.what
        return rendered(
            head, self.place, self.operand, self.position, self.expected, self.got,
            (self.hint,), self.rule,
        )  # fmt: skip

    def _render_traceback_(self) -> list[str]:
        """The lines that a notebook shows: IPython calls this instead of printing every frame."""
        notes = getattr(self, "__notes__", ())
        return [line for part in (f"{type(self).__name__}: {self}", *notes)
                for line in part.splitlines()]  # fmt: skip


class ShapeError(KernelError):
    """Shapes or element counts that do not fit each other or the instruction."""


class PartitionError(ShapeError):
    """Too many partitions, or a start partition that hardware cannot address."""


class CapacityError(KernelError):
    """A tensor or result that does not fit its memory or PSUM bank."""


class DTypeError(KernelError):
    """A dtype that is unknown, or that the instruction or generation does not take."""


class MemorySpaceError(KernelError):
    """An operand in a memory that the engine cannot reach."""


class EngineError(KernelError):
    """An engine that cannot execute the instruction as asked."""


class AccessError(KernelError):
    """An index, slice or access pattern outside the tensor or outside what hardware can address."""


class ImmutableError(KernelError):
    """A write to a tensor that the kernel may only read."""


class FrozenRegisterError(ImmutableError, AssertionError):
    """A write to the variable of a dynamic loop."""


class EndlessLoopError(KernelError):
    """A loop on the device that does not end within the turns that an option allows."""


class SignatureError(KernelError):
    """Arguments that the function does not take in the chosen NKI version."""


class AttributeValueError(KernelError):
    """An attribute value that the instruction does not take."""


class UndefinedError(KernelError):
    """A result that the documents leave undefined, such as accumulating onto unwritten PSUM."""


class UnsupportedError(KernelError):
    """Something NKI has and this machine does not model. It is rejected, never ignored."""


class DeviceValueError(UnsupportedError, TypeError):
    """A number of the device where Python needs its value, while a kernel is traced."""


class AbsentNameError(UnsupportedError, AttributeError):
    """A name that an object of the language does not have, in this version or at all."""


def absent_name(owner: str, name: str, having: Sequence[str], hint: str | None) -> AttributeError:
    """The error for an absent `name` of `owner`; Python's own protocols get Python's own error."""
    if name.startswith("_"):
        return AttributeError(f"{owner} has no attribute {name!r}")
    return AbsentNameError(
        f"{owner} has no {name}", expected=", ".join(having), got=name, hint=hint,
        rule=f"NKI: {owner}",
    )  # fmt: skip


class LaunchError(KernelError):
    """A kernel started with arguments, a grid or a setting that it cannot run with."""


class OptionError(LaunchError):
    """A mistake in an option. Of a command: exit code 2, and no place in a program."""


class ProgramTextError(KernelError):
    """Text that is not a kernel program."""


class ProgramMistakesError(ProgramTextError):
    """Text with several mistakes; `errors` holds every one."""

    def __init__(self, errors: Sequence[KernelError]) -> None:
        super().__init__(f"{len(errors)} mistakes in a program", place=errors[0].place)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n\n".join([self.what, *map(str, self.errors)])


class ProgramError(KernelError):
    """A kernel program that breaks rules of the machine; `errors` holds every violation."""

    def __init__(self, what: str, errors: Sequence[KernelError]) -> None:
        super().__init__(what)
        self.place = errors[0].place
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n\n".join([self.what, *map(str, self.errors)])


class ValuesNeededError(RuntimeError):
    """A run without values came to a value that decides what happens: run again with values."""


class InternalError(RuntimeError):
    """A mistake of ours, not of the kernel: please report it with the text below."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken limit of an instruction, before it is raised."""

    error: type[KernelError]
    what: str
    operand: str | None = None
    expected: str | None = None
    got: str | None = None
    hint: str | None = None
    rule: str | None = None

    def finding(
        self,
        rule: str,
        place: Place | None,
        instruction: str | None = None,
        code: str | None = None,
    ) -> Finding:
        """The broken limit as a finding of the check, or the kind of mistake, called `rule`."""
        return Finding(
            rule, self.what, place, expected=self.expected, got=self.got, cure=self.hint,
            source=self.rule, code=code, instruction=instruction, operand=self.operand,
        )  # fmt: skip


def raise_violations(instruction: str, violations: list[Violation]) -> None:
    """Raise the first violation, naming the others below it."""
    first, *rest = violations
    also = "\n    ".join(f"also: {v.what}" for v in rest)
    hint = "\n    ".join(part for part in (first.hint, also) if part) or None
    raise first.error(
        first.what,
        expected=first.expected,
        got=first.got,
        hint=hint,
        rule=first.rule,
        operand=first.operand,
        instruction=instruction,
    )
