"""`python workspace/docs_site.py`: the documentation as a site, in build/site.

The pages are the ones that docs/README.md lists, and the READMEs that they link to. A
page of SPLIT becomes one page per entry. Links are checked: to a page, to a file of the repository,
and to a heading; outside ones are not opened. Exit 1 on a fault.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from members import ROOT
from pages import REFERENCE, reference
from public_address import ADDRESS, BRANCH

SOURCE, OUTPUT = ROOT / "build" / "site-source", ROOT / "build" / "site"
CONTENTS = "docs/README.md"
SPLIT = ("rules", "instructions", "traps", "checks", "tokenplan-codes")
"""Pages of docs/ with a heading of the second level per entry."""

_LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s]+)\)|`+[^`]*`+")
_HEADING = re.compile(r"^#{1,6} (.*)$")
_ANCHOR = re.compile(r'<a id="([^"]+)">')
_FENCE = re.compile(r"^\s*(```|~~~)")


@dataclass
class Page:
    """A page of the site: where it comes from, its lines, the anchors that it has."""

    source: str
    path: str
    lines: list[str]
    entries: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The text of the first heading."""
        return next((m[1] for line in self.lines if (m := _HEADING.match(line))), self.path)

    def anchors(self) -> Iterator[str]:
        """The names that a link may have after #."""
        for line in outside_code(self.lines):
            yield from _ANCHOR.findall(line)
            if found := _HEADING.match(line):
                yield slug(found[1])


def text_of(source: str) -> str:
    """A file of the repository, or what it is the index of."""
    name = source.removeprefix("docs/")
    return reference(name) if name in REFERENCE else (ROOT / source).read_text(encoding="utf-8")


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def outside_code(lines: list[str]) -> Iterator[str]:
    """The lines outside fenced blocks."""
    inside = False
    for line in lines:
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield line


def split(page: Page) -> Iterator[Page]:
    """The page's head, then a page for each heading of the second level."""
    parts: list[list[str]] = [[]]
    inside = False
    for line in page.lines:
        inside ^= bool(_FENCE.match(line))
        if line.startswith("## ") and not inside:
            parts.append([])
        parts[-1].append(line if inside else re.sub(r"^##(?=#* )", "#", line))
    folder = PurePosixPath(page.path).with_suffix("")
    yield Page(page.source, f"{folder}/index.md", parts[0])
    for lines in parts[1:]:
        yield Page(page.source, f"{folder}/{slug(lines[0][2:])}.md", lines)


def linked(page: Page) -> Iterator[str]:
    """The targets of a page's links, as written."""
    for line in outside_code(page.lines):
        yield from (found[3] for found in _LINK.finditer(line) if found[3])


def in_repository(source: str, target: str) -> str:
    """The path below the root of what a link in `source` names."""
    whole = (ROOT / source).parent / target
    return whole.resolve().relative_to(ROOT).as_posix()


class Site:
    """All pages, and where each file of the repository and each anchor is in the site."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.faults: list[str] = []
        self._places: dict[tuple[str, str], Page] = {}

    def add(self, source: str) -> None:
        """Add a file of the repository as a page, or as a page per entry."""
        name = PurePosixPath(source)
        path = "index.md" if source == CONTENTS else name.as_posix().removeprefix("docs/")
        if source == "README.md":
            path = "overview.md"
        page = Page(source, path, text_of(source).splitlines())
        is_split = source.startswith("docs/") and name.stem in SPLIT
        for part in [*split(page)] if is_split else [page]:
            self.pages.append(part)
            self._places.setdefault((source, ""), part)
            for anchor in part.anchors():
                self._places.setdefault((source, anchor), part)

    def collect(self) -> None:
        """Add the contents, what it lists, and the READMEs that those link to."""
        self.add(CONTENTS)
        listed = [page for page in self._files(self.pages[0]) if page.endswith(".md")]
        for source in dict.fromkeys(listed):
            self.add(source)
        readmes = (f for p in [*self.pages] for f in self._files(p) if f.endswith("README.md"))
        for source in dict.fromkeys(readmes):
            if (source, "") not in self._places and source.startswith(
                ("packages", "tools", "docs")
            ):
                self.add(source)

    def _files(self, page: Page) -> Iterator[str]:
        for target in linked(page):
            path = target.partition("#")[0]
            if path and ":" not in path and (ROOT / page.source).parent.joinpath(path).is_file():
                yield in_repository(page.source, path)

    def text(self, page: Page) -> str:
        """The page with its links as the site has them."""
        inside, lines = False, []
        for line in page.lines:
            inside ^= bool(_FENCE.match(line))
            changed = line if inside else _LINK.sub(lambda m: self._link(page, m), line)
            lines.append(changed)
        return "\n".join(lines) + "\n"

    def _link(self, page: Page, found: re.Match[str]) -> str:
        picture, shown, target = found[1], found[2], found[3]
        if target is None or ":" in target:
            return found[0]
        path, _, anchor = target.partition("#")
        source = in_repository(page.source, path) if path else page.source
        if (place := self._places.get((source, anchor))) is not None:
            here = PurePosixPath(page.path).parent
            up = PurePosixPath(*[".."] * len(here.parts)) / place.path
            is_entry = anchor and anchor == slug(place.title) and place.path != page.path
            mark = f"#{anchor}" if anchor and not is_entry else ""
            return f"{picture}[{shown}]({up}{mark})"
        if (source, "") in self._places or not (ROOT / source).exists():
            self.faults.append(f"{page.source}: a link to {target}, which is not there")
        if picture:
            shutil.copy(ROOT / source, SOURCE / PurePosixPath(page.path).parent)
            return f"![{shown}]({PurePosixPath(source).name})"
        return f"[{shown}]({ADDRESS}/{BRANCH}/{source})" if ADDRESS else shown

    def write(self) -> None:
        """Write the pages as MkDocs reads them."""
        shutil.rmtree(SOURCE, ignore_errors=True)
        for page in self.pages:
            (SOURCE / page.path).parent.mkdir(parents=True, exist_ok=True)
        for page in self.pages:
            (SOURCE / page.path).write_text(self.text(page), encoding="utf-8")
        for schema in (ROOT / "docs/schemas").glob("*.json"):
            shutil.copy(schema, SOURCE / "schemas")

    def navigation(self) -> str:
        """The `nav:` of MkDocs: the headings of the contents, and the links below each."""
        rows = ["nav:", "  - Documents: index.md"]
        for line in self.pages[0].lines:
            if line.startswith("## "):
                rows.append(f"  - {line[3:]}:")
            elif line.startswith("- "):
                for _, shown, target in (m.groups() for m in _LINK.finditer(line) if m[3]):
                    place = self._places.get((in_repository(CONTENTS, target), ""))
                    if place is not None:
                        rows.append(f"    - {shown[:1].upper()}{shown[1:]}: {place.path}")
        return "\n".join(rows) + "\n"


def main() -> int:
    """Write the pages and build the site."""
    site = Site()
    site.collect()
    site.write()
    print("\n".join(site.faults) or f"{len(site.pages)} pages, every link leads somewhere")
    config = SOURCE.with_name("mkdocs.yml")
    fixed = (ROOT / "workspace/mkdocs.yml").read_text(encoding="utf-8")
    config.write_text(fixed + site.navigation(), encoding="utf-8")
    command = (sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", str(config))
    built = subprocess.run(command, check=False)
    return 1 if site.faults or built.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
