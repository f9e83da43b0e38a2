"""Kernel programs run on integers that are exact in every format that they pass through."""

import numpy as np

from neuroncore.program import Call, Loop, Program
from nkigym.transforms import TransformStep, apply
from nkigym.tuning.execution import run_program


def given(program: Program, seed: int = 0, low: int = -3, high: int = 4) -> list[np.ndarray]:
    """One array of small integers per parameter."""
    numbers = np.random.default_rng(seed)
    return [
        numbers.integers(low, high, buffer.shape).astype(buffer.dtype.storage)
        for buffer in program.parameters
    ]


def outputs(program: Program) -> list[np.ndarray]:
    """All results and arguments as float64; what nothing writes is NaN."""
    return [np.asarray(r, np.float64) for r in run_program(program, given(program))]


def where(program: Program, words: str) -> tuple[int, ...]:
    """Where loop variables and instructions lead: "m n:1 dma_copy", :1 for the second."""
    body, at = program.body, ()
    for word in words.split():
        name, _, nth = word.partition(":")
        found = [
            n
            for n, s in enumerate(body)
            if name == (s.variable if isinstance(s, Loop) else getattr(s, "instruction", None))
        ]
        n = found[int(nth or 0)]
        at, chosen = (*at, n), body[n]
        body = () if isinstance(chosen, Call) else getattr(chosen, "body", ())
    return at


def scheduled(program: Program, text: str) -> tuple[Program, list[TransformStep]]:
    """The program after the steps of a text, a line each: transform, where, options.

    `before=word` is the cut in front of a statement of that loop.
    """
    steps = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(" ")
        words = [word for word in rest.split() if "=" not in word]
        options = dict(word.split("=") for word in rest.split() if "=" in word)
        if "before" in options:
            cut = where(program, " ".join([*words, options.pop("before")]))[-1]
            options["cut"] = str(cut)
        if "cuts" in options and not options["cuts"][0].isdigit():
            cuts = (where(program, " ".join([*words, w]))[-1] for w in options["cuts"].split(","))
            options["cuts"] = ",".join(map(str, cuts))
        typed = tuple(
            (k, int(v) if v.isdigit() and k not in ("cuts", "order") else v)
            for k, v in options.items()
        )
        steps.append(TransformStep(name, where(program, " ".join(words)), typed))
        program = apply(program, steps[-1])
    return program, steps
