"""JUnit XML: a suite per file, a test case per kernel, which fails while something is left."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from nki_migrate.findings import FileResult, Finding, KernelReport
from nki_migrate.report.report import Report

OUTSIDE = "(outside of kernels)"
# What XML 1.0 cannot hold, escaped or not: https://www.w3.org/TR/xml/#charsets
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(report: Report) -> str:
    """The document. Files that failed are errors; findings outside of kernels get a case."""
    root = Element("testsuites", name="nki-migrate")
    for result in report.results:
        _suite(root, result, report)
    for node in (root, *root):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            node.set(name, str(sum(1 for _ in node.iter(tag))))
        node.set("skipped", str(sum(1 for _ in node.iter("skipped"))))
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, result: FileResult, report: Report) -> None:
    suite = SubElement(root, "testsuite", name=_clean(result.path))
    if result.error is not None:
        case = _case(suite, result, "(file)", 1)
        SubElement(case, "error", message=_clean(result.error))
        return
    for kernel in result.kernels:
        case = _case(suite, result, kernel.name, kernel.line)
        left = [f for f in result.findings if f.kernel == kernel.name and report.is_left(f)]
        _outcome(case, left, _differences(result, kernel, report))
        if kernel.untouched and not len(case):
            SubElement(case, "skipped", message="left as it is, as a comment asks")
    known = {kernel.name for kernel in result.kernels}
    outside = [f for f in result.findings if f.kernel not in known and report.is_left(f)]
    if outside:
        _outcome(_case(suite, result, OUTSIDE, outside[0].line), outside, ())


def _case(suite: Element, result: FileResult, name: str, line: int) -> Element:
    path = _clean(result.path)
    return SubElement(
        suite, "testcase", classname=path, name=_clean(name), file=path, line=str(line)
    )


def _outcome(case: Element, left: list[Finding], differences: Iterable[str]) -> None:
    lines = [f"{f.path}:{f.line}:{f.column}: {f.rule} [{f.safety}] {f.message}" for f in left]
    differences = list(differences)
    if not lines and not differences:
        return
    said = ([f"{len(lines)} to migrate"] if lines else []) + differences
    failure = SubElement(case, "failure", message=_clean("; ".join(said)), type="migration")
    failure.text = _clean("\n".join([*lines, *differences]))


def _differences(result: FileResult, kernel: KernelReport, report: Report) -> Iterator[str]:
    for row in report.verification or ():
        if (row["file"], row["kernel"]) == (result.path, kernel.name) and not row["equal"]:
            yield "; ".join(["old and new are not shown to be equal", *row["problems"]])


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
