"""Random Tile IR kernels and files: how many are rejected, lose an order or crash a reader.

    python benchmarks/tile_ir_counts.py COUNT --first SEED --cases NUMBER

Counts: compiled (random kernels that the compiler rejects for sm_90), mutated (damaged files that
crash the reader or the report), command (the same by `tokenplan explain FILE`), programs (random
kernels whose tokens lose an order), functions and addresses (random bytecode, written again, that
loses one), shares (functions of random bytecode by what the checker executes of them), verdicts
(predictions that the compiler's remarks contradict). A run that is interrupted prints what it
counted until then.
"""

from __future__ import annotations

import argparse
import io
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from traceback import format_exception_only

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages.tokenplan.tests.tile_ir.access_cases import agreement, case
from packages.tokenplan.tests.tile_ir.random_bytecode import random_bytecode
from packages.tokenplan.tests.tile_ir.test_bytecode import is_rejected, mutated
from packages.tokenplan.tests.tile_ir.test_random_bytecode import missing_of_function
from packages.tokenplan.tests.tile_ir.test_token_checker import lost
from packages.tokenplan.tests.tile_ir.test_verdicts import compile_random

from tokenplan.cli import main as command
from tokenplan.tile_ir import compiler
from tokenplan.tile_ir.bytecode_report import reported

Case = tuple[str, list[str]]
"""What a case is counted as, and what is wrong with it."""


def failing(action: Callable[[], object]) -> Case:
    """Counted as rejected or accepted; what it raises is wrong, but for a compiler without time."""
    try:
        return ("rejected" if action() else "accepted"), []
    except compiler.RejectionError as wrong:
        return "rejected", [str(wrong)]
    except compiler.CompilerError as wrong:
        return "not compiled", [str(wrong)]
    except Exception as wrong:
        return "wrong", ["".join(format_exception_only(wrong)).strip()]


def by_seed(check: Callable[[int], Case]) -> Callable[[int, int], Iterator[Case]]:
    return lambda first, cases: map(check, range(first, first + cases))


def listed(texts: Iterator[str] | list[str]) -> Case:
    found = list(texts)
    return ("wrong" if found else "right"), found


def mutations(first: int, cases: int) -> Iterator[Case]:
    return (failing(partial(is_rejected, data)) for data in mutated(first, cases))


def commands(first: int, cases: int) -> Iterator[Case]:
    """Exit codes of `tokenplan explain FILE`; one without a message is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.tileirbc"
        for data in mutated(first, cases):
            path.write_bytes(data)
            yield of_command(["explain", str(path), "--budget", "1000"])


def of_command(words: list[str]) -> Case:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = command(words)
        except SystemExit as end:
            code = end.code
        except Exception as wrong:
            return "wrong", ["".join(format_exception_only(wrong)).strip()]
    text = err.getvalue()
    is_clear = not text if code == 0 else bool(text) or bool(out.getvalue())
    wrong = (
        [] if is_clear and "Traceback" not in text and code in (0, 1, 2) else [f"{code}: {text}"]
    )
    return f"exit code {code}", wrong


def share(seed: int) -> Case:
    """Whether the checker executes all of a function, or some orders are kept for that."""
    found = reported(random_bytecode(seed), distinct=[("p0", "p1"), ("p0", "p2"), ("p1", "p2")])
    if found.contradicted:
        return "lost", [f"seed {seed}: {found.text.splitlines()[-1]}"]
    if found.unchecked:
        return "not executed", []
    return ("orders kept" if "whose orders are kept" in found.text else "executed"), []


def verdict(seed: int) -> Case:
    try:
        text = agreement(case(random.Random(seed)), seed)
    except compiler.CompilerError as wrong:
        return "not compiled", [f"seed {seed}: {wrong}"]
    return listed([text] if text else [])


COUNTS: dict[str, Callable[[int, int], Iterator[Case]]] = {
    "compiled": by_seed(lambda seed: failing(partial(compile_random, seed))),
    "mutated": mutations,
    "command": commands,
    "programs": by_seed(lambda seed: listed(lost(seed))),
    "functions": by_seed(lambda seed: listed(missing_of_function(seed))),
    "addresses": by_seed(lambda seed: listed(missing_of_function(seed, carries_addresses=True))),
    "shares": by_seed(share),
    "verdicts": by_seed(verdict),
}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Prints what is wrong, then the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", choices=COUNTS)
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--cases", type=int, default=100)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    counts = Counter[str]()
    try:
        for kind, wrong in COUNTS[given.count](given.first, given.cases):
            counts[kind] += 1
            for text in wrong:
                print(f"- {text}", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    absent = compiler.missing("tileiras")
    print(f"{given.count}, first seed {given.first}, {counts.total()} of {given.cases} cases: "
          f"{dict(sorted(counts.items()))}; tileiras {absent or compiler.version()}")  # fmt: skip


if __name__ == "__main__":
    main()
