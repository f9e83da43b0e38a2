"""Claims are decided for all iterations, as enumeration decides them."""

from itertools import product
from random import Random

import pytest

from nkigym.checker import check_step
from nkigym.checker.step_certificates import UndecidedError, Variable, solution

RELATED = {
    "=": lambda x, y: x == y,
    ">": lambda x, y: x > y,
    "<": lambda x, y: x < y,
    "*": lambda x, y: True,
}


def access(constant, terms, shape, strides, loops=()):
    return {
        "kind": "W", "offset": [constant, terms], "shape": shape, "strides": strides,
        "loops": [list(loop) for loop in loops],
    }  # fmt: skip


def elements(access, at):
    """Every element that an access names while the loops around both are at `at`."""
    constant, terms = access["offset"]
    own = [[(name, v) for v in range(*loop)] for name, *loop in access["loops"]]
    for values in product(*own):
        every = {**at, **dict(values)}
        offset = constant + sum(c * every[name] for name, c in terms.items())
        for indices in product(*map(range, access["shape"])):
            yield offset + sum(i * s for i, s in zip(indices, access["strides"], strict=True))


def holds(claim):
    """Whether no related iterations share an element and none leaves the buffer."""
    size = claim["shape"][0]
    everywhere = [
        dict(zip([name for name, *_ in claim["shared"]], at, strict=True))
        for at in product(*(range(*loop) for _, *loop, _ in claim["shared"]))
    ]
    named = {
        side: [(at, set(elements(claim[side], at))) for at in everywhere] for side in ("a", "b")
    }
    inside = all(0 <= e < size for each in named.values() for _, es in each for e in es)
    return inside and not any(
        one & other and all(RELATED[r](x[name], y[name]) for name, *_, r in claim["shared"])
        for (x, one), (y, other) in product(named["a"], named["b"])
    )


def random_access(random, names):
    loops = [("own", random.randrange(3), random.randrange(1, 6), 1)] * random.randrange(2)
    terms = {name: random.choice([0, 1, 2, 3, 6, 12]) for name in (*names, *(n for n, *_ in loops))}
    shape = [random.randrange(1, 4) for _ in range(random.randrange(1, 3))]
    return access(
        random.randrange(20), terms, shape, [random.choice([1, 2, 6]) for _ in shape], loops
    )


def random_claim(random):
    names = ["i", "j"][: random.randrange(3)]
    shared = [
        [
            n,
            random.randrange(2),
            random.randrange(2, 8),
            random.randrange(1, 3),
            random.choice("=><*"),
        ]
        for n in names
    ]
    return {
        "buffer": "out", "shape": [random.choice([40, 200])], "shared": shared,
        "a": random_access(random, names), "b": random_access(random, names),
    }  # fmt: skip


@pytest.mark.parametrize("claims", [600, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_a_claim_holds_where_enumeration_finds_no_overlap(claims):
    random = Random(29)
    verdicts = []
    for number in range(claims):
        claim = random_claim(random)
        verdicts.append(check_step({"claims": [claim]}) == [])
        assert verdicts[-1] == holds(claim), f"seed 29, claim {number}: {claim}"
    assert 0.1 < sum(verdicts) / claims < 0.9


@pytest.mark.parametrize("relation", ["=", ">", "<", "*"])
def test_a_claim_that_one_of_a_thousand_iterations_refutes_is_found(relation):
    random = Random(29)
    for _ in range(250):
        at, width = random.randrange(1, 999), random.choice([1, 64, 512])
        strip = {"shape": [128, width], "strides": [1000 * width, 1]}
        claim = {
            "buffer": "out", "shape": [128, 1000, width], "shared": [["i", 0, 1000, 1, relation]],
            "a": access(0, {"i": width}, **strip), "b": access(at * width, {}, **strip),
        }  # fmt: skip
        (finding,) = check_step({"claims": [claim]})
        assert f"'i': {at}" in finding.what.partition(" and ")[0]


def test_different_factors_of_one_loop_are_decided_over_its_triangle():
    claim = {
        "buffer": "out", "shape": [4000], "shared": [["i", 0, 1000, 1, ">"]],
        "a": access(0, {"i": 3}, [1], [1]), "b": access(0, {"i": 4}, [1], [1]),
    }  # fmt: skip
    (finding,) = check_step({"claims": [claim]})
    assert "overlap at {'i': 4} and {'i': 3}" in finding.what

    claim["a"]["offset"] = [1, {"i": 4}]
    assert check_step({"claims": [claim]}) == []


def test_an_equation_that_takes_too_long_is_not_taken_for_decided():
    odd = [Variable(2 * n * n + 1_000_003, 0, 1000) for n in range(12)]

    with pytest.raises(UndecidedError):
        solution(odd, 5_000_017_777)
