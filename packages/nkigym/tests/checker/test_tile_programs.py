"""Value numbers and execution say the same about programs and about what is not quite a program."""

import json
import random

import pytest
from packages.nkigym.tests.mutants import drop_last_store, mutants

from nkigym import certificate, exhaust, matmul_root, rewrite_graph
from nkigym.checker import CertificateFileError, check_tiles, read_certificate, run_tiles
from nkigym.tiles import parse_tiles

SPACES = [(2, 1, 2), (1, 2, 2), (2, 2, 2), (1, 1, 4)]


def programs(tiles, number=None, seed=3):
    contraction, rows, columns = tiles
    space = rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))
    nodes = list(exhaust(space).depths)
    if number is not None and number < len(nodes):
        nodes = random.Random(seed).sample(nodes, number)
    return space, nodes


@pytest.mark.parametrize("tiles", SPACES)
def test_what_steps_lead_to_is_still_the_function(tiles):
    space, nodes = programs(tiles, 60)

    for node in nodes:
        certified = read_certificate(certificate(space, node).to_json())
        assert certified.findings() == []
        assert run_tiles(certified.program) == []


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_all_programs_are_certified_and_execute():
    space, nodes = programs((2, 2, 2))

    assert len(nodes) == 20_000
    for node in nodes:
        certified = certificate(space, node)
        assert certified.findings() == []
        assert run_tiles(certified.program) == []


@pytest.mark.parametrize("tiles", SPACES)
def test_a_program_without_its_last_store_is_rejected_by_both(tiles):
    space, nodes = programs(tiles, 10)

    for node in nodes:
        program = space.tile_program(node)
        less = program._replace(statements=tuple(drop_last_store(program.statements, None)))
        assert "is never written" in str(check_tiles(less)[0])
        assert "elements differ" in str(run_tiles(less)[0])


@pytest.mark.parametrize("seed", range(4))
def test_certificate_and_execution_agree_on_mutants(seed):
    """1,000 in all; some change nothing that matters, such as the order of two loads."""
    chosen = random.Random(seed)
    verdicts = []
    for tiles in [(2, 1, 2), (1, 2, 2), (2, 2, 2), (3, 1, 2), (1, 1, 4)]:
        space, nodes = programs(tiles, 5, seed) if tiles != (3, 1, 2) else three_deep(chosen)
        for node in nodes:
            for mutant in mutants(space.tile_program(node), chosen, 10):
                certified, equal = not check_tiles(mutant), not run_tiles(mutant)
                assert certified == equal, (mutant, check_tiles(mutant), run_tiles(mutant))
                verdicts.append(certified)

    assert len(verdicts) == 250
    assert 0 < sum(verdicts) < 125


def three_deep(chosen):
    """Programs whose sums have three terms, so that their order shows; a few steps each."""
    space = rewrite_graph(matmul_root(rows=1, columns=2, contraction=3))
    nodes = [space.root]
    for _ in range(4):
        steps = space.steps(nodes[-1])
        nodes.append(space.after(nodes[-1], chosen.choice(steps)))
    return space, nodes


def test_another_order_of_three_terms_is_another_value():
    text = """def f(A: float32[384, 128], B: float32[384, 128]):
    output = allocate(128, 128)
    a0 = A[0:128, 0:128]
    a1 = A[128:256, 0:128]
    a2 = A[256:384, 0:128]
    b0 = B[0:128, 0:128]
    b1 = B[128:256, 0:128]
    b2 = B[256:384, 0:128]
    s0 = nc_matmul(stationary=a{0}, moving=b{0})
    s1 = nc_matmul(stationary=a{1}, moving=b{1}, accumulator=s0)
    s2 = nc_matmul(stationary=a{2}, moving=b{2}, accumulator=s1)
    output[0:128, 0:128] = s2
    return output
"""
    orders = {
        order: (check_tiles(parse_tiles(text.format(*order))),
                run_tiles(parse_tiles(text.format(*order))))
        for order in [(0, 1, 2), (1, 0, 2), (2, 1, 0)]
    }  # fmt: skip

    assert orders[0, 1, 2] == orders[1, 0, 2] == ([], [])
    assert all(orders[2, 1, 0])


def changed(document, **parts):
    return json.dumps({**json.loads(document), **parts})


@pytest.fixture
def document():
    space, (node, *_) = programs((1, 2, 2), 1)
    return certificate(space, node).to_json()


def test_a_false_claim_is_found(document):
    all_the_same = [7 for _ in json.loads(document)["output"]]

    found = read_certificate(changed(document, output=all_the_same)).findings()

    assert {each.what for each in found} == {"output has other contents than claimed"}


def test_a_claim_that_is_missing_is_found(document):
    tiles = json.loads(document)["tiles"]
    tiles.popitem()

    (found,) = read_certificate(changed(document, tiles=tiles)).findings()

    assert found.what == "the claims are not about the program's tiles"


@pytest.mark.parametrize(
    "parts", [{"version": 2}, {"tiles": 3}, {"function": "conv"}, {"output": ["x"]}], ids=str
)
def test_what_is_no_certificate_is_rejected(document, parts):
    with pytest.raises(CertificateFileError):
        read_certificate(changed(document, **parts))


def test_text_that_is_no_json_is_rejected():
    with pytest.raises(CertificateFileError, match="not a certificate"):
        read_certificate("{")
