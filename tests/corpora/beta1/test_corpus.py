"""The corpus under beta1, and its harness on a repository made up here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.corpora.beta1.__main__ import main
from tests.corpora.beta1.catalog import Kernel, read_corpus
from tests.corpora.beta1.harness import Verdict, run_corpus, summary
from tests.corpora.beta1.report import markdown, replace_part
from tests.corpora.beta1.sources import Snapshot, SourceError, extract

from nki_migrate.verify.cases import CasesError

CORPUS = os.environ.get("NKI_CORPUS")
needs_clones = pytest.mark.skipif(
    not CORPUS, reason="NKI_CORPUS is not set: no clones of the public kernels to run"
)

# A kernel that needs a sibling module, and torch for code that is never called.
KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import torch
from neuronxcc.nki._private.private_api import sendrecv
from neuronxcc.nki.compiler.backends.tensors import HBMTensor
from torch.nn import functional as F
from . import generated_pb2 as messages
from .sizes import ROWS

class Host(torch.nn.Module):
    def forward(self, x):
        return F.relu(x)

SEED = torch.manual_seed(0).item()
print(SEED.nothing())

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[0:ROWS], nl.load(x[0:ROWS]) * 2)
    return out

@nki.jit
def broken(x):
    return nl.load(x[0:129])

@nki.jit
def endless(x):
    while True:
        pass

@nki.jit
def with_private(x: HBMTensor):
    return sendrecv(x)

@nki.jit
def with_torch(x):
    return torch.zeros(3)
"""
REFERENCE = "def twice(x):\n    return 2.0 * x\ndef thrice(x):\n    return 3.0 * x\n"
CASE = """
[[case]]
kernel = "{kernel}"
reference = "ours.py:{reference}"
{more}
[[case.arg]]
name = "x"
dtype = "float32"
shape = [4, 8]
"""
HEAD = 'schema = "nki-corpus-cases/1"\nrepo = "project/kernels"\nfile = "lib/pack/doubles.py"\n'


def git(clone: Path, *arguments: str) -> str:
    command = ("git", "-C", str(clone), "-c", "user.name=n", "-c", "user.email=e", *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A corpus of one clone, whose working tree has moved on."""
    clone = tmp_path / "clones" / "project" / "kernels"
    package = clone / "lib" / "pack"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('not to be imported')")
    (package / "doubles.py").write_text(KERNEL)
    (package / "sizes.py").write_text("ROWS = 4\n")
    git(clone, "init", "-q")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "kernels")
    (package / "doubles.py").write_text("syntax error")
    return tmp_path / "clones"


@pytest.fixture
def catalog(tmp_path: Path, clones: Path) -> Path:
    """A folder like this one, that names the clone's file; cases are for the test to write."""
    folder = tmp_path / "catalog"
    for name in ("cases", "references", "setups"):
        (folder / name).mkdir(parents=True)
    commit = git(clones / "project/kernels", "rev-parse", "HEAD")
    (folder / "corpus.toml").write_text(
        f'[[file]]\nrepo = "project/kernels"\ncommit = "{commit}"\npath = "lib/pack/doubles.py"\n'
        'blob = ""\nkernels = ["double", "broken", "endless", "with_private", "with_torch"]\n'
    )
    (folder / "references/ours.py").write_text(REFERENCE)
    return folder


def judged(catalog: Path, clones: Path, *texts: str) -> dict[str, Verdict]:
    (catalog / "cases" / "doubles.toml").write_text(HEAD + "".join(texts))
    return {v.kernel.name: v for v in run_corpus(read_corpus(catalog), clones)}


def case(kernel: str, reference: str = "twice", more: str = "") -> str:
    return CASE.format(kernel=kernel, reference=reference, more=more)


def test_a_kernel_of_a_commit_runs_with_its_siblings_and_without_torch(catalog, clones):
    verdicts = judged(catalog, clones, case("double"))

    assert (verdicts["double"].word, verdicts["double"].max_error) == ("match", 0.0)


def test_one_failure_stops_no_other_kernel(catalog, clones):
    endless = case("endless", more="seconds = 2.0")
    absent = (case("with_torch"), case("with_private"))
    texts = (case("double", "thrice"), case("broken"), endless, *absent)

    verdicts = judged(catalog, clones, *texts)

    words = {name: verdict.word for name, verdict in verdicts.items()}
    failing = ("broken", "endless", "with_private", "with_torch")
    assert words == dict.fromkeys(failing, "fails") | {"double": "differs"}
    assert "32 of 32 elements differ" in verdicts["double"].reason
    assert "lib/pack/doubles.py" in verdicts["broken"].reason
    assert "corpus_case" not in verdicts["broken"].reason
    assert "stopped after 2 s" in verdicts["endless"].reason
    assert "torch.zeros is a stand-in" in verdicts["with_torch"].reason
    assert "_private.private_api.sendrecv is a stand-in" in verdicts["with_private"].reason


def test_a_setup_is_called_in_place_of_the_kernel(catalog, clones):
    (catalog / "setups/ours.py").write_text("def run(module, x):\n    return module.double(x)\n")

    verdicts = judged(catalog, clones, case("double", more='setup = "ours.py:run"'))

    assert verdicts["double"].word == "match"


def test_excluded_kernels_leave_the_denominator(catalog, clones):
    exclude = '[[exclude]]\nkernel = "broken"\nreason = "two cores"\nwhy = "it shares an array"\n'

    verdicts = judged(catalog, clones, exclude, case("double"))

    numbers = summary(list(verdicts.values()))
    assert verdicts["broken"].reason == "two cores: it shares an array"
    assert (numbers["excluded"], numbers["no case"], numbers["share"]) == (1, 3, 1 / 4)
    assert "1 of 4 (25%) run under beta1 and match" in markdown(list(verdicts.values()))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (case("dubble"), "has no entry kernel 'dubble'"),
        (case("double", more="rtoll = 1"), "unknown key 'rtoll'"),
        (case("double").replace("ours.py", "theirs.py"), "needs a reference"),
        ('[[exclude]]\nkernel = "double"\nreason = "too hard"\nwhy = "so"\n', "reason must be"),
        (
            '[[exclude]]\nkernel = "double"\nreason = "two cores"\nwhy = ""\n' + case("double"),
            "has a case",
        ),
    ],
    ids=["kernel", "key", "reference", "reason", "both"],
)
def test_a_misspelt_cases_file_is_rejected(catalog, clones, text, complaint):
    with pytest.raises(CasesError, match=complaint):
        judged(catalog, clones, text)


def test_a_missing_commit_is_named(clones, tmp_path):
    with pytest.raises(SourceError, match="0000000"):
        extract(Snapshot(clones / "project/kernels", "0" * 40), "a.py", tmp_path)


def test_the_table_replaces_its_part_of_a_document_only(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- beta1: begin -->old<!-- beta1: end -->\nafter\n")

    replace_part(page, "beta1", "new")

    assert page.read_text() == (
        "before\n<!-- beta1: begin -->\n\nnew\n<!-- beta1: end -->\nafter\n"
    )


def test_without_clones_the_command_says_where_to_put_them(monkeypatch, capsys):
    monkeypatch.delenv("NKI_CORPUS", raising=False)

    with pytest.raises(SystemExit) as left:
        main([])

    assert left.value.code == 2
    assert "NKI_CORPUS is not set" in capsys.readouterr().err


def test_every_cases_file_can_be_used():
    assert len(read_corpus()) == 185


@needs_clones
@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_the_corpus_matches(tmp_path):
    """At least 120 kernels have a case, 85 % of the kernels that are not excluded match."""
    assert CORPUS is not None
    kernels: tuple[Kernel, ...] = read_corpus()

    numbers = summary(run_corpus(kernels, Path(CORPUS)))

    assert numbers["with a case"] >= 120
    assert numbers["share"] >= 0.85
