"""The options of nki-run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_type_hints

from neuroncore.checks import CHECKS
from neuroncore.commands.parser import (
    add_color,
    add_confinement,
    add_output_file,
    add_output_format,
    add_target,
    at_least,
)
from neuroncore.commands.parser import make_parser as parser_of
from neuroncore.commands.reporting import add_report
from neuroncore.findings.formats import FORMATS
from neuroncore.options import Options

_EXAMPLE = """\
examples:
  nki-run softmax.py                          as the program's imports say, on a trn2
  nki-run --nki 0.2 --target trn1 softmax.py  another version, another device
  nki-run --nki auto softmax.py               the version that its kernels are written for
  nki-run --option uninitialized=zero softmax.py --rows 128
  nki-run -m kernels.bench --rows 128         a module, as with python -m
  nki-run - < softmax.py                      what stdin holds, also of a pipe
  nki-run softmax.py:softmax 'x=f32[256,512]' one function, on an array of this shape
  nki-run --backend nkigen-lite mlp.py:mlp 'f32[64,128]' 'w=f32[128,256]'
                                              a NumPy function, as the kernel made of it
  nki-run --record facts.json softmax.py      what nki-migrate --facts may rest edits on
  nki-run --trace softmax.svg softmax.py      where the time of its kernels would go
  nki-run --report softmax.html softmax.py    the same with source and memory, as one page
  nki-run --profile out softmax.py            its time on a device, beside the estimate
  nki-run --check memory,capacity softmax.py  what runs here and may fail on a device
  nki-run --dump tensors softmax.py           what every tensor of its kernels held, as .npz files
  nki-run --compare precise=0 softmax.py      the first instruction whose result that changes

Everything after SCRIPT or MODULE goes to the program. After FILE.py:FUNCTION or MODULE:FUNCTION
come its arguments, by name or in order: DTYPE[SHAPE] is an array of standard normal numbers (the
same ones each time), FILE.npy what it holds, all else a Python number or text. The exit code is the
program's: 1 after an error in a kernel, or where --check or --compare found something; 2 for a
mistake in the options of nki-run itself.
Where an option is left out, NKI_RUNTIME, NKI_RUNTIME_VERSION, NEURON_PLATFORM_TARGET_OVERRIDE,
NKI_PRECISE_FP and NKI_SIMULATOR are read.
"""


def make_parser() -> argparse.ArgumentParser:
    """The command line of nki-run."""
    parser = parser_of(
        "nki-run",
        "Run a program that imports nki (or neuronxcc.nki) on this computer.",
        _EXAMPLE,
        distribution="nki-runtime",
        usage="nki-run [options] SCRIPT [ARGS ...]\n       nki-run [options] -m MODULE [ARGS ...]\n"
        "       nki-run [options] FILE.py:FUNCTION [[NAME=]VALUE ...]",
    )
    _add_machine(parser)
    _add_observers(parser)
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print, once each, what the kernels request and what changes nothing here",
    )
    add_report(parser)
    parser.add_argument(
        "--reference", metavar="FILE.py:FUNCTION",
        help="with --report: a function of the same arguments; the page has the ulps from it",
    )  # fmt: skip
    parser.add_argument(
        "--results", metavar="N", type=at_least(0), default=None,
        help="with --report: the page has the values of the first N inputs and results of "
        "each launch (default 2000)",
    )  # fmt: skip
    add_confinement(parser)
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("script", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _add_machine(parser: argparse.ArgumentParser) -> None:
    """Options of the machine that the kernels run on, and of its version."""
    parser.add_argument(
        "--backend",
        default="auto",
        metavar="NAME",
        help="auto (default: what the program imports: neuronxcc is beta1, nki is beta2), "
        "beta1, beta2, nkigen-lite for NumPy functions, or neuron for the vendor's package",
    )
    parser.add_argument(
        "--nki",
        metavar="VERSION",
        help="NKI version, such as 0.6, or auto: what the kernels are written for",
    )
    add_target(parser, default=None)
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a modelling assumption of the machine; may be repeated: "
        + ", ".join(get_type_hints(Options)),
    )
    parser.add_argument(
        "--shadow", action="store_true", help="hide an installed vendor package for this run"
    )


def _add_observers(parser: argparse.ArgumentParser) -> None:
    """Options of observers of a run, and of their files."""
    parser.add_argument(
        "--record",
        metavar="FACTS.json",
        type=Path,
        help="write down what every expression of the kernels was: shape, dtype, memory, value",
    )
    parser.add_argument(
        "--check",
        metavar="NAME[,NAME ...]",
        help="look for what runs here and fails elsewhere: "
        + "; ".join(f"{check.name} ({check.proves})" for check in CHECKS.values())
        + "; all of them: all",
    )
    add_output_format(
        parser, tuple(FORMATS), help="of the findings of --check and the error that ends the run; "
        "text (default): on stderr; others: on stdout, and what the program prints on stderr",
    )  # fmt: skip
    add_output_file(parser)
    add_color(parser)
    parser.add_argument(
        "--trace",
        metavar="FILE",
        type=Path,
        help="estimate the time of every kernel and write the timelines: FILE.svg for a browser, "
        "FILE.parquet as the profiler's table, any other FILE for ui.perfetto.dev",
    )
    parser.add_argument(
        "--profile",
        metavar="FILE",
        type=Path,
        help="compare the estimate of a kernel with a profile that was captured of it, line by "
        "line: the profiler's folder of Parquet tables, its JSON, or a Perfetto trace",
    )
    parser.add_argument(
        "--constants",
        metavar="FILE",
        type=Path,
        help="constants of the estimates of --trace, --report and --profile; with --profile, they "
        "are fitted to it and written there",
    )
    parser.add_argument(
        "--dump",
        metavar="DIR",
        type=Path,
        help="write what every tensor of the kernels held, by variable or name=, as .npz files",
    )
    parser.add_argument(
        "--compare",
        metavar="NAME=VALUE",
        help="run twice, as it is and with nki=, target= or an option changed, and name the first "
        "instruction whose result departs",
    )
    parser.add_argument(
        "--bound",
        metavar="ULPS",
        type=float,
        help="what --compare allows, in units of the last place of the result's dtype (default 1)",
    )
