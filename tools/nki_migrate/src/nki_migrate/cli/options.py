"""The options of `check`, `diff` and `fix`: one annotated type per option."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from neuroncore.findings.formats import FORMATS

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH", help="Files, folders (searched for .py), or - for stdin."),
]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="VER", help="Version of the input. [default: auto, per kernel]"),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="VER", help="Target version, or auto: the pin on nki. [default: 0.6]"
    ),
]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="(fix, diff) Run old, new and reference for kernels that have a case.",
    ),
]
CasesFile = Annotated[
    Path | None,
    typer.Option(
        "--cases",
        metavar="FILE",
        help="Cases: the old kernels run first, and what is seen counts as facts."
        " [default with --verify: cases.toml beside the input]",
    ),
]
OutputDir = Annotated[
    Path | None,
    typer.Option("--output-dir", metavar="DIR", help="(fix) Write there instead of in place."),
]
Step = Annotated[bool, typer.Option("--step", help="Stop after the next version.")]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="IDS", help="Rule ids or prefixes, comma list; repeatable."),
]
ExtendSelect = Annotated[
    list[str] | None, typer.Option("--extend-select", metavar="IDS", help="Added to --select.")
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="IDS", help="Rules that stay silent.")
]
UnsafeFixes = Annotated[
    bool | None,
    typer.Option(
        "--unsafe-fixes/--no-unsafe-fixes", help="Also apply edits that rest on an assumption."
    ),
]
Nl = Annotated[
    Literal["keep", "lower"] | None,
    typer.Option("--nl", help="What to do with nl.load, nl.add, … [default: lower]"),
]
BlockDims = Annotated[
    Literal["auto", "list", "fold"] | None,
    typer.Option("--block-dims", help="How to remove block dimensions. [default: auto]"),
]
Assume = Annotated[
    list[str] | None,
    typer.Option(
        "--assume", metavar="FACT", help="'kernel.arg: shape=(S, 128), dtype=bf16'; repeatable."
    ),
]
AssumeFile = Annotated[
    Path | None, typer.Option("--assume-file", metavar="FILE", help="Assumptions, one per line.")
]
Todo = Annotated[
    Literal["comment", "none"] | None,
    typer.Option("--todo", help="Leave a TODO above what was not converted. [default: comment]"),
]
AllOrNothing = Annotated[
    bool | None,
    typer.Option(
        "--all-or-nothing/--partial",
        help="Leave a kernel untouched unless every construct of it converts.",
    ),
]
DiffMode = Annotated[bool, typer.Option("--diff", help="(fix) Do what the diff command does.")]
CheckMode = Annotated[bool, typer.Option("--check", help="(fix) Do what the check command does.")]


def _known_format(name: str) -> str:
    if name not in FORMATS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, FORMATS))}.")
    return name


OutputFormat = Annotated[
    str,
    typer.Option(
        "--output-format",
        metavar=f"<{'|'.join(FORMATS)}>",
        callback=_known_format,
        help="Report format.",
    ),
]
OutputFile = Annotated[
    Path | None, typer.Option("--output-file", metavar="FILE", help="Where the report goes.")
]
Statistics = Annotated[bool, typer.Option("--statistics", help="Counts per rule.")]
Jobs = Annotated[
    int | None, typer.Option("-j", "--jobs", metavar="N", min=1, help="Processes. [default: cores]")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="GLOB", help="Instead of the default excludes; repeatable."),
]
ExtendExclude = Annotated[
    list[str] | None,
    typer.Option("--extend-exclude", metavar="GLOB", help="Added to the excludes; repeatable."),
]
NoGitignore = Annotated[bool, typer.Option("--no-gitignore", help="Also search what git ignores.")]
ExitZero = Annotated[bool, typer.Option("--exit-zero", help="0 where it would be 1.")]
ExitNonZeroOnFix = Annotated[
    bool, typer.Option("--exit-non-zero-on-fix", help="(fix) 1 when files changed.")
]
SelfCheck = Annotated[
    bool | None,
    typer.Option(
        "--self-check/--no-self-check",
        help="Run again on the output, fail if that changes it. [default: on when CI=true]",
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings from this file only.")
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no configuration file.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Only the closing line.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Also what each edit rests on.")]
Color = Annotated[Literal["auto", "always", "never"], typer.Option("--color", help="Colours.")]
StdinFilename = Annotated[
    str, typer.Option("--stdin-filename", metavar="NAME", help="What to call the text of -.")
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Wall clock of one child process."),
]
Memory = Annotated[
    int, typer.Option("--memory", metavar="MIB", min=64, help="Memory limit of one child process.")
]


Notebooks = Annotated[
    bool, typer.Option("--notebooks", help="Also the code cells of .ipynb files.")
]
AddIgnores = Annotated[
    bool,
    typer.Option(
        "--add-ignores", help="(fix, diff) Add suppression comments for what is found, no edits."
    ),
]
Facts = Annotated[
    list[Path] | None,
    typer.Option("--facts", metavar="FILE", help="Facts of `nki-run --record`; repeatable."),
]
