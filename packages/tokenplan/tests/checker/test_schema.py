"""The checker holds files to the published schema by its own code, as any validator would."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter

import jsonschema
import pytest

from neuroncore.program import parse_program
from tokenplan import Join, Pipeline, analyse
from tokenplan.checker import PlanFileError, check_plan, main, read_plan_file
from tokenplan.checker.json_values import Value, load
from tokenplan.checker.schema import DEEPEST, KEYWORDS, NOTES, hold_to_schema
from tokenplan.graph.token_graph import ALIAS, JOIN
from tokenplan.neuroncore import schedule
from tokenplan.report import plan_file
from tokenplan.rules import NAMES

PROGRAM = parse_program("""program("trn2", "0.6")
def blocks(a: float32[2048, 512], b: float32[2048, 512], c: float32[2048, 512]):
    for k in range(4):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        for m in range(2):
            tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply, name="twice")
        dma_copy(dst=a[128*k + 128 : 128*k + 256, :], src=t[:, :], name="store")
        dma_copy(dst=c[128*k : 128*k + 128, :], src=b[128*k : 128*k + 128, :], name="copy")
    return a
""")
CLAIMS = [Pipeline("k", 1), Join("load", "copy")]
VALIDATOR = jsonschema.Draft202012Validator(plan_file.schema())
NONSENSE = (
    None, True, -1, 0, 1, 2, 7, 0.5, 1.0, 10**30, 1e300, "", "a", "t", "kept", "isl", "W", [], {},
    [[]], ["a", "b"], {"a": 1}, "sha256:0", "\ud800",
)  # fmt: skip


def thorough(seed: int):
    return pytest.param(seed, marks=pytest.mark.thorough)


@pytest.fixture(scope="module")
def plan():
    graph = analyse(PROGRAM, CLAIMS, may_alias=[("b", "c")])
    return plan_file.as_json(graph, schedule(graph, PROGRAM).as_json())


def is_rejected(file) -> bool:
    try:
        hold_to_schema(Value(file))
    except PlanFileError as rejected:
        assert str(rejected)
        return True
    return False


def places(value, way=()):
    """The way to every value inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, below in inner:
        yield (*way, name)
        if isinstance(below, (dict, list)):
            yield from places(below, (*way, name))


def mutated(plan, chance: random.Random):
    """A file with one thing changed: a value, a member more or fewer, two that change places."""
    file = json.loads(json.dumps(plan))
    *way, last = chance.choice(list(places(file)))
    held = file
    for step in way:
        held = held[step]
    what = chance.choice(("replace", "drop", "add", "twice", "swap"))
    if what == "drop":
        del held[last]
    elif what == "add" and isinstance(held, dict):
        held[chance.choice(("x", "op", "loop", "depth", "swizzle", "terms"))] = held[last]
    elif what == "twice" and isinstance(held, list):
        held.append(copy.deepcopy(held[last]))
    elif what == "swap":
        other = chance.choice(list(held if isinstance(held, dict) else range(len(held))))
        held[last], held[other] = held[other], held[last]
    else:
        held[last] = chance.choice(NONSENSE)
    return file


def test_a_plan_that_tokenplan_makes_follows_the_schema(plan):
    VALIDATOR.validate(plan)
    assert not is_rejected(plan)
    assert check_plan(read_plan_file(json.dumps(plan))).findings == []


@pytest.mark.parametrize("seed", [0, *(thorough(seed) for seed in range(1, 20))])
def test_its_verdict_is_that_of_a_validator_of_json_schema(plan, seed):
    """600 files each, the seed in the name of the test."""
    chance, verdicts = random.Random(seed), Counter()
    for _ in range(600):
        file = mutated(plan, chance)
        expected = not VALIDATOR.is_valid(file)
        assert is_rejected(file) == expected, json.dumps(file)
        verdicts[expected] += 1
    assert min(verdicts.values()) > 50


@pytest.mark.parametrize("seed", range(2))
def test_a_file_that_breaks_the_schema_is_never_checked(plan, seed):
    chance = random.Random(1000 + seed)
    for _ in range(200):
        file = mutated(plan, chance)
        try:
            check_plan(read_plan_file(json.dumps(file)))
        except PlanFileError as rejected:
            assert str(rejected)
        else:
            assert VALIDATOR.is_valid(file), json.dumps(file)


def test_every_keyword_of_the_schema_is_one_that_it_knows():
    def keywords(schema):
        for name, value in schema.items():
            yield name
            if name in ("properties", "$defs"):
                for inner in value.values():
                    yield from keywords(inner)
            elif name in ("items", "additionalProperties") and isinstance(value, dict):
                yield from keywords(value)
            elif name == "oneOf":
                for inner in value:
                    yield from keywords(inner)

    jsonschema.Draft202012Validator.check_schema(plan_file.schema())
    assert set(keywords(plan_file.schema())) <= KEYWORDS.keys() | NOTES


def test_the_schema_names_every_rule():
    named = plan_file.schema()["$defs"]["edge"]["properties"]["rule"]["enum"]
    assert sorted(named) == sorted((*NAMES, JOIN, ALIAS))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"schema": NaN}', "NaN is not a number in JSON"),
        ('{"schema": -Infinity}', "-Infinity is not a number in JSON"),
        ("[" * 200_000 + "]" * 200_000, "not JSON that can be read"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, "not JSON that can be read"),
        ("[" * 400 + "]" * 400, "nested more than 150 deep"),
        ('{"schema": ' + "1" * 10_000 + "}", "not JSON that can be read"),
        ('{"schema": "tokenplan/1", "schema": "tokenplan/1"}', "has 'schema' twice"),
        ("\ufeff{}", "not JSON"),
    ],
    ids=["nan", "infinity", "lists", "objects", "deep", "digits", "twice", "mark"],
)
def test_what_json_readers_stumble_over_is_rejected(text, words):
    with pytest.raises(PlanFileError) as caught:
        hold_to_schema(load(text))
    assert words in str(caught.value)


def test_a_body_of_too_many_loops_is_rejected(plan):
    file, body = copy.deepcopy(plan), []
    for n in range(70):
        loop = {"variable": "k", "trips": 1, "start": 0, "step": 1, "location": ""}
        body = [{"loop": f"deep{n}", "body": body} | loop]
    file["body"] += body
    with pytest.raises(PlanFileError, match="loops are nested more than 60 deep"):
        read_plan_file(json.dumps(file))
    assert DEEPEST > 2 * 70


@pytest.mark.parametrize(
    ("way", "value", "words"),
    [
        (("body", 0, "trips"), 2.0, "expected an integer, got 2.0"),
        (("body", 0, "trips"), 10**40, "is not between"),
        (("body", 0, "start"), 10**40, "is not between"),
        (("key",), "sha256:" + "0" * 64 + "\n", "64 digits"),
        (("edges", 0, "rule"), "luck", "edges[0].rule: expected one of never "),
        (("edges", 0, "assumes"), "all is well", "edges[0].assumes: expected a list"),
        (("edges", 0, "assumes"), [1], "edges[0].assumes[0]: expected a text, got 1"),
        (("plan", "waits", 0, "count"), 3, "plan.waits[0].count: expected an object, got 3"),
        (("plan", "more"), 1, "plan: unknown field more"),
        (("stats", "luck"), 1, "stats: unknown field luck"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(plan, way, value, words):
    file = copy.deepcopy(plan)
    held = file
    for step in way[:-1]:
        held = held[step]
    held[way[-1]] = value
    with pytest.raises(PlanFileError) as caught:
        read_plan_file(json.dumps(file))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"\xff\xfe\x00{", b"\x00" * 100, b"[" * 1_000_000, b"\xed\xa0\x80"],
    ids=["utf-16", "zeros", "brackets", "surrogate"],
)  # fmt: skip
def test_a_foreign_file_is_one_line_and_exit_code_2(tmp_path, capsys, content):
    file = tmp_path / "plan.json"
    file.write_bytes(content)
    assert main([str(file)]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert said.err.startswith(f"tokenplan check: {file}: ")
