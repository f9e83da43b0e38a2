"""What is told to people, by codes that stay the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One remark on a kernel or its plan."""

    code: str
    text: str
    place: str = ""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.code}: {self.text}"

    @property
    def is_error(self) -> bool:
        return self.code.startswith("E")


@dataclass(frozen=True, slots=True)
class Page:
    """What a code means, and what to do about it."""

    code: str
    title: str
    means: str
    do: str

    def text(self) -> str:
        """The page as text."""
        return f"{self.code}: {self.title}\n\n{self.means}\n\n{self.do}"


PAGES = {
    page.code: page
    for page in (
        Page(
            "E1",
            "missing order",
            "Two operations touch the same bytes, at least one writes them, and nothing in the "
            "plan makes one wait for the other: the result depends on which is faster.",
            "Do not run this plan. If tokenplan made it, please report it with the plan file; if "
            "it was edited, restore the edge or wait between the two operations that are named.",
        ),
        Page(
            "E2",
            "false `parallel`",
            "`parallel` was claimed for a loop whose iterations touch the same bytes. The witness "
            "names a byte and the two iterations.",
            "Drop the claim, or make the iterations independent: give each its own tile (allocate "
            "it inside the loop) or its own part of the tensor.",
        ),
        Page(
            "E3",
            "pipeline deeper than its distance",
            "`pipeline(d)` lets d iterations of a loop be in flight, so iterations less than d "
            "apart must not depend on each other; an edge of the graph has a shorter distance.",
            "Claim at most the distance that is named, or make the value that is carried reach "
            "further (more buffers).",
        ),
        Page(
            "E4",
            "false statement",
            "A plan file says something of its edges or waits that is not so: a witness that is "
            "none, an edge called implied or removed that is not, a wait that counts other "
            "completions than it names.",
            "Do not run this plan. If tokenplan made it, please report it with the plan file.",
        ),
        Page(
            "E5",
            "deadlock",
            "A queue of the plan waits for a completion that never comes: waits stand in a circle, "
            "or one counts more than its queue ever does.",
            "Do not run this plan. Restore the wait that is named, or the order of the queues.",
        ),
        Page(
            "E6",
            "other values",
            "Played under some latencies, the plan computes other values than the kernel does when "
            "its operations run one after the other.",
            "Look for the missing order (E1) that comes with it.",
        ),
        Page(
            "W1",
            "opaque access",
            "Which bytes an operation touches is known on the device alone (an index that is read "
            "there), or cannot be said exactly. It is taken to touch everything it could.",
            "Nothing, if the order is needed anyway. Else read or write a part with an index that "
            "the program knows.",
        ),
        Page(
            "W2",
            "distinct parameters assumed",
            "Orders were removed because two parameters of the kernel were taken to be different "
            "tensors.",
            "Do not pass one tensor (or two that overlap) for both parameters.",
        ),
        Page(
            "W3",
            "index range assumed",
            "An index reaches 2^31 or more, where 32-bit address arithmetic of a device may wrap "
            "around; a proof took it to be an ordinary integer.",
            "Split the tensor or the loop so that indices stay below 2^31.",
        ),
        Page(
            "W4",
            "bulk copy refused",
            "A tile cannot be moved by the target's bulk copy engine; the rule that refuses it is "
            "named.",
            "Change the tile's shape or layout as the rule says, or accept the slower copy.",
        ),
        Page(
            "W5",
            "redundant edge",
            "An edge or wait of the plan orders nothing that others do not order already.",
            "It is harmless but may cost time; take it out, or report it if tokenplan made it.",
        ),
    )
}
"""Every code, errors first."""
