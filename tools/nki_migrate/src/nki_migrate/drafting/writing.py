"""The drafts of a release as files, all of them or none."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from nki_migrate.drafting.api import Api, ApiError, as_json, version_number
from nki_migrate.drafting.changes import ApiChange, changes_between
from nki_migrate.drafting.rules import draft_rules
from nki_migrate.drafting.tables import conformance_rows, support_row, surface_lines

_README = """\
# DRAFT: NKI {old} to {new}

Made by `nki-migrate draft-rules` from two API descriptions. A draft knows signatures and nothing of
meaning: read the release notes for each line, and delete this folder when all of it has been moved.

| file | belongs to |
|---|---|
| `isa.txt` | `packages/neuroncore/src/neuroncore/surface/isa.txt`: extend or add these lines |
| `nki_names.json` | `tests/coverage/nki_names.json`: extend or add these rows |
| `rules/` | `tools/nki_migrate/src/nki_migrate/rules/`: a file per rule; write its hooks |
| `versions.md` | the support table of `docs/versions.md`: a row |
| `api-{new}.json` | the description of {new}, for the release after it |
| `changes.json` | every change, for programs |

What no signature shows belongs into `surface/changes.toml`: another order, rounding or default.

{count} changes:

{listed}
"""


def drafts(old: Api, new: Api) -> tuple[Mapping[str, str], Sequence[ApiChange]]:
    """Relative path → text of each draft, and the changes that they are made of.

    Raises ApiError unless the second description is of a later version.
    """
    if old.version == new.version:
        raise ApiError(f"both descriptions are of NKI {old.version}")
    if version_number(old.version) > version_number(new.version):
        raise ApiError(f"NKI {old.version} is newer than {new.version}: give the older one first")
    changes = changes_between(old, new)
    mark = f"# DRAFT: signatures of NKI {old.version} and {new.version}\n"
    listed = "\n".join(f"- {change}" for change in changes)
    files = {
        "README.md": _README.format(
            old=old.version, new=new.version, count=len(changes), listed=listed
        ),
        "isa.txt": mark + "".join(f"{line}\n" for line in surface_lines(old, new)),
        "nki_names.json": conformance_rows(old, new),
        "versions.md": f"<!-- DRAFT -->\n{support_row(new, changes)}\n",
        f"api-{new.version}.json": as_json(new),
        "changes.json": _changes_json(old, new, changes),
    }
    rules = draft_rules(old, new, changes)
    return files | {f"rules/{name}": text for name, text in rules.items()}, changes


def _changes_json(old: Api, new: Api, changes: Sequence[ApiChange]) -> str:
    rows = [
        {"kind": c.kind.value, "name": c.name, "parameter": c.parameter, "old": c.old, "new": c.new}
        for c in changes
    ]
    document = {"schema": "nki-api-changes/1", "from": old.version, "to": new.version}
    return json.dumps({**document, "draft": True, "changes": rows}, indent=1) + "\n"


def write_drafts(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files into a new or empty folder; on an error nothing of it remains.

    Raises ApiError where the folder holds something or cannot be made.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ApiError(f"{folder}: it exists and is not an empty folder")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise ApiError(f"{folder}: cannot be made: {error}") from None
    try:
        for name, text in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        aside.chmod(0o755)
        aside.replace(folder)
    except OSError as error:
        raise ApiError(f"{folder}: cannot be written: {error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def summary(changes: Sequence[ApiChange]) -> str:
    """How many changes there are of each kind."""
    counts = Counter(change.kind.value for change in changes)
    return "".join(f"{count:>4} {kind}\n" for kind, count in counts.most_common())
