"""JUnit XML: a suite per file, a test case per kernel, which fails while findings are open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from neuroncore.findings.finding import Finding
from neuroncore.findings.report import FileReport, Report

OUTSIDE = "(outside of kernels)"
# Characters that XML 1.0 cannot contain, escaped or not: https://www.w3.org/TR/xml/#charsets
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report) -> str:
    """The document. Files that failed are errors; findings outside of kernels get a case."""
    root = Element("testsuites", name=report.tool)
    for file in report.files:
        _suite(root, file, report)
    for node in (root, *root):
        for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            node.set(name, str(sum(1 for _ in node.iter(tag))))
        node.set("skipped", str(sum(1 for _ in node.iter("skipped"))))
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, file: FileReport, report: Report) -> None:
    suite = SubElement(root, "testsuite", name=_clean(file.path))
    if file.error is not None:
        SubElement(_case(suite, file, "(file)", 1), "error", message=_clean(file.error))
        return
    findings = [finding for finding in file.findings if report.is_open(finding)]
    for known in file.cases:
        case = _case(suite, file, known.name, known.line)
        own = [finding for finding in findings if finding.kernel == known.name]
        _outcome(case, own, known.problems, report)
        if known.skipped is not None and not len(case):
            SubElement(case, "skipped", message=known.skipped)
    names = {known.name for known in file.cases}
    outside = [finding for finding in findings if finding.kernel not in names]
    if outside:
        _outcome(_case(suite, file, OUTSIDE, outside[0].region.line), outside, (), report)


def _case(suite: Element, file: FileReport, name: str, line: int) -> Element:
    path = _clean(file.path)
    return SubElement(
        suite, "testcase", classname=path, name=_clean(name), file=path, line=str(line)
    )


def _outcome(
    case: Element, findings: Sequence[Finding], problems: Sequence[str], report: Report
) -> None:
    if not findings and not problems:
        return
    lines = [f"{f.region}: {f.label} [{f.safety or f.severity}] {f.message}" for f in findings]
    count = [f"{len(lines)} {report.unresolved}"] if lines else []
    message = _clean("; ".join([*count, *problems]))
    failure = SubElement(case, "failure", message=message, type=report.failure)
    failure.text = _clean("\n".join([*lines, *problems]))


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
