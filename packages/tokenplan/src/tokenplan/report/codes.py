"""Meanings of the codes, with cures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """The meaning of a code, and its cure."""

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
            "Two operations access the same bytes, at least one writes them, and nothing in the "
            "plan makes one wait for the other: the result depends on which is faster.",
            "Do not run this plan. If tokenplan made it, please report it with the plan file; if "
            "it was edited, restore the edge or wait between the two operations that are named.",
        ),
        Page(
            "E2",
            "false `parallel`",
            "`parallel` was claimed for a loop whose iterations access the same bytes. The witness "
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
            "The plan file says of an edge, witness or loop what does not hold for the operations "
            "in the same file.",
            "Do not trust the file: make it again from the kernel with `tokenplan explain`.",
        ),
        Page(
            "E5",
            "deadlock",
            "Played through, the plan comes to a point where every queue waits for another.",
            "Do not run this plan. If it was edited, restore the wait that is named; else report "
            "it with the plan file.",
        ),
        Page(
            "E6",
            "other values",
            "Played through, the plan leaves other values in memory than the kernel does in "
            "sequence.",
            "Do not run this plan; an E1 or E4 beside it says which order is missing.",
        ),
        Page(
            "W1",
            "opaque access",
            "Which bytes an operation accesses is known on the device alone (an index that is read "
            "there), or cannot be said exactly. It is taken to access everything it could.",
            "Nothing, if the order is needed anyway. Else read or write a part with an index that "
            "the program contains.",
        ),
        Page(
            "W2",
            "distinct tensors assumed",
            "Orders were removed because two parameters of the kernel were taken to be different "
            "tensors, or a tensor without an address was taken to be disjoint from those whose "
            "address the kernel fixed in the same memory.",
            "Do not pass one tensor (or two that overlap) for both parameters. Give all tensors of "
            "a memory an address, or none, if the compiler may place others over fixed ones.",
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
            "bulk copy rejected",
            "A tile cannot be moved by the target's bulk copy engine; the rule that rejects it is "
            "named.",
            "Change the tile's shape or layout as the rule says, or accept the slower copy.",
        ),
        Page(
            "W5",
            "redundant edge",
            "An edge or wait of the plan orders nothing that others do not order already.",
            "It is harmless but may cost time; take it out, or report it if tokenplan made it.",
        ),
        Page(
            "W6",
            "two tensors may share bytes",
            "`--may-alias a,b` (or `may_alias=` in Python) says that two parameters may be one "
            "tensor or overlap. Every access to one then stays in order with every access to the "
            "other, whichever part it accesses, unless both read: nothing is known of which bytes "
            "coincide.",
            "Leave the option out where the two are known to be disjoint: the orders between them "
            "go away, and W2 says what was assumed.",
        ),
        Page(
            "W7",
            "search given up",
            "Whether two accesses ever overlap is a question about whole numbers that can take "
            "very long. The exact search stops after a fixed number of steps per pair of accesses "
            "(`--budget`), the same on every machine. The order is then kept: it may be needless, "
            "but none is lost.",
            "Give more with `--budget`, or write the index in a simpler way.",
        ),
    )
}
"""Every code, errors first."""
