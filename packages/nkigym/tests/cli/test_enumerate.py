"""The command line: tiles in, counts out."""

import json
import os
import subprocess
import sys

import pytest

from nkigym import exhaust, matmul_root, rewrite_graph
from nkigym.cli import main

KEYS = {"unique", "canonical", "visited", "certified", "cpu_s", "peak_mb"}


def enumerated(capsys, *arguments):
    """The exit code and what is printed as JSON."""
    code = main(["enumerate", *arguments, "--output-format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_json_has_the_counts_of_the_space(capsys):
    code, found = enumerated(capsys, "--tiles", "1,2,2")

    assert code == 0
    assert found.keys() >= KEYS
    counts = {key: found[key] for key in ("unique", "canonical", "visited", "certified")}
    assert counts == {"unique": 340, "canonical": 198, "visited": 914, "certified": 340}
    assert found["depths"] == [1, 8, 26, 48, 63, 67, 58, 40, 21, 7, 1]
    assert found["cpu_s"] >= 0
    assert found["complete"]


def test_text_says_the_same(capsys):
    assert main(["enumerate", "--tiles", "2,1,2"]) == 0

    assert capsys.readouterr().out.splitlines()[:-1] == [
        "matmul in tiles K=2, M=1, N=2: 15 statements, 4 opportunities",
        "24 programs, 24 certified",
        "24 but for names, order and numbering of tiles",
        "53 visited: the root, 52 transitions",
        "by depth: 1 4 7 7 4 1",
    ]


def test_fewer_transitions_lead_to_as_many_programs(capsys):
    _, found = enumerated(capsys, "--tiles", "1,2,2", "--reduced")

    assert (found["unique"], found["visited"]) == (340, 630)


def test_every_certificate_can_be_checked(capsys):
    code, found = enumerated(capsys, "--tiles", "2,1,2", "--check")

    assert (code, found["checked"]) == (0, 24)


def test_other_functions_and_transforms_are_counted_and_checked(capsys):
    code, found = enumerated(
        capsys, "--function", "rmsnorm_matmul", "--tiles", "1,1,2", "--transforms",
        "data-reuse,operand-merge,call-reuse,wide-merge", "--check",
    )  # fmt: skip

    assert code == 0
    assert (found["function"], found["unique"], found["checked"]) == ("rmsnorm_matmul", 72, 72)
    assert found["canonical"] is None


@pytest.mark.parametrize(
    ("transforms", "kinds"),
    [("data-reuse", {"reuse"}), ("operand-merge", {"merge loads", "merge calls", "merge stores"})],
)
def test_one_transform_leads_where_its_steps_alone_lead(capsys, transforms, kinds):
    root = matmul_root(rows=2, columns=2, contraction=1)
    space = rewrite_graph(root)
    reached = [space.root]
    for node in reached:
        steps = [step for step in space.steps(node) if step.kind in kinds]
        reached += [n for n in dict.fromkeys(space.after(node, s) for s in steps)
                    if n not in reached]  # fmt: skip

    _, found = enumerated(capsys, "--tiles", "1,2,2", "--transforms", transforms)

    assert found["unique"] == len(reached)
    assert len(exhaust(rewrite_graph(root, [transforms])).depths) == len(reached)


def test_an_empty_space_is_said(capsys):
    assert main(["enumerate", "--tiles", "1,1,1"]) == 1

    given = capsys.readouterr()
    assert "1 programs" in given.out
    assert "nothing to search: data-reuse and operand-merge can do nothing" in given.err


def test_a_limit_keeps_what_was_found_and_says_that_there_is_more(capsys):
    code = main(["enumerate", "--tiles", "8,8,8", "--limit", "50", "--output-format", "json"])

    given = capsys.readouterr()
    found = json.loads(given.out)
    assert code == 1
    assert found["unique"] >= 50
    assert found["canonical"] is None
    assert not found["complete"]
    assert "stopped at --limit" in given.err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--tiles", "a,b,c"], "'a,b,c' is not three numbers, such as 2,1,2"),
        (["--tiles", "2,2"], "'2,2' is not three numbers"),
        (["--tiles", "0,1,2"], "0 tiles along K; 1 to 64"),
        (["--tiles", "1,2,-1"], "-1 tiles along N"),
        (["--tiles", "1,2,2", "--transforms", "split"], "'split' is none of data-reuse"),
        (["--tiles", "1,2,2", "--transforms", ","], "no transform"),
        (["--tiles", "1,2,2", "--limit", "0"], "'0' is not a whole number of at least 1"),
        (["--tiles", "2,1,1", "--function", "tensor_add"], "tensor_add contracts nothing"),
        (["--tiles", "1,1,1", "--function", "conv"], "'conv' is none of "),
        ([], "--tiles"),
    ],
)
def test_a_mistake_in_the_options_is_named(capsys, arguments, what):
    with pytest.raises(SystemExit) as stopped:
        main(["enumerate", *arguments])

    assert stopped.value.code == 2
    assert what in capsys.readouterr().err


def test_a_pipe_gets_the_counts_and_nothing_else():
    command = [sys.executable, "-c", "import sys; from nkigym.cli import main; sys.exit(main())",
               "enumerate", "--tiles", "2,1,2"]  # fmt: skip

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("matmul in tiles")
    assert done.stderr == ""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_terminal_sees_how_far_it_is():
    reads, writes = os.openpty()
    command = [sys.executable, "-c", "import sys; from nkigym.cli import main; sys.exit(main())",
               "enumerate", "--tiles", "2,1,2"]  # fmt: skip

    subprocess.run(command, stdout=subprocess.PIPE, stderr=writes, check=True)

    os.close(writes)
    assert b"programs, " in os.read(reads, 1000)
    os.close(reads)
