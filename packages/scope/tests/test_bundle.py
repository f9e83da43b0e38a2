"""Script and style of the pages are what the TypeScript sources make."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent
WEB, ASSETS = PACKAGE / "web", PACKAGE / "src" / "nki_scope" / "assets"


@pytest.fixture(scope="module")
def npm() -> str:
    found = shutil.which("npm")
    if found is None:
        pytest.skip("npm is not installed: the committed bundle is not compared with its sources")
    if not (WEB / "node_modules").is_dir():
        done = subprocess.run((found, "ci", "--no-audit", "--no-fund"), cwd=WEB, check=False)
        if done.returncode:
            pytest.skip("npm ci failed: the committed bundle is not compared with its sources")
    return found


def test_the_bundle_is_made_of_the_sources(npm, tmp_path):
    subprocess.run((npm, "run", "-s", "build", "--", str(tmp_path)), cwd=WEB, check=True)

    for asset in ASSETS.iterdir():
        assert asset.read_bytes() == (tmp_path / asset.name).read_bytes(), (
            f"{asset.name} differs: run npm run build in packages/scope/web"
        )


def test_the_sources_have_no_type_errors(npm):
    done = subprocess.run((npm, "run", "-s", "types"), cwd=WEB, capture_output=True)

    assert done.returncode == 0, done.stdout.decode()


def test_script_and_style_are_at_most_150_kb_compressed():
    assets = b"".join(asset.read_bytes() for asset in ASSETS.iterdir())

    assert len(gzip.compress(assets)) <= 150_000
