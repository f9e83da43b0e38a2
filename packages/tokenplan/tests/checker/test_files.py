"""Files that are not plans are rejected with the place of any mistake."""

import copy
import json

import pytest

from tokenplan.checker import PlanFileError, main, read_plan_file


def set_in(file, path, value):
    *way, last = path
    for step in way:
        file = file[step]
    if value is DROP:
        del file[last]
    else:
        file[last] = value


DROP = object()
WRONG = {
    "another schema": (["schema"], "plan/2", "schema: expected 'tokenplan/1', got 'plan/2'"),
    "no edges": (["edges"], DROP, "no edges"),
    "a field too many": (["edgs"], [], "unknown field edgs"),
    "a loop twice": (["body", 0, "body", 0], {"loop": "k", "variable": "k", "trips": 1, "start": 0,
                     "step": 1, "location": "", "body": []},
                     "k is already a loop"),
    "trips below zero": (["body", 0, "trips"], -1, "body[0].trips: -1 is less than 0"),
    "trips that are not a number": (["body", 0, "trips"], True, "expected an integer, got true"),
    "an unknown buffer": (["body", 0, "body", 0, "accesses", 0, "buffer"], "x",
                          "body[0].body[0].accesses[0].buffer: x is not a buffer"),
    "an unknown mode": (["body", 0, "body", 0, "accesses", 0, "mode"], "RW", "one of R W A"),
    "strides for other dims": (["body", 0, "body", 0, "accesses", 0, "strides"], [4],
                               "1 strides for 0 dimensions"),
    "an offset of a strange loop": (["body", 0, "body", 0, "accesses", 0, "offset", "terms"],
                                    {"m": 1}, "m is none of the loops"),
    "bytes outside the buffer": (["body", 0, "body", 0, "accesses", 0, "width"], 32,
                                 "accesses bytes 0 to 80 of a, which has 64"),
    "a use outside its scope": (["buffers", 0, "scope"], ["k", "k"], "a is made in ['k', 'k']"),
    "an edge from an unknown op": (["edges", 0, "from"], "x",
                                   "edges[0].from: x is not an operation"),
    "an edge over a list": (["edges", 0, "buffer"], ["a"],
                            "edges[0].buffer: expected a text or null"),
    "an edge over an object": (["edges", 0, "buffer"], {},
                               "edges[0].buffer: expected a text or null"),
    "an edge over no buffer": (["edges", 0, "buffer"], "x", "edges[0].buffer: x is not a buffer"),
    "a result of no buffer": (["results"], ["x"], "results[0]: x is not a buffer"),
    "a short distance": (["edges", 0, "distance"], [], "edges[0].distance: load and work share"),
    "a distance into the future": (["edges", 0, "distance"], [-1], "points into the future"),
    "a cycle": (["edges", 0, "from"], "store", "a cycle: store does not stand before work"),
    "a kind of its own": (["edges", 0, "kind"], "RAR", "one of RAW WAR WAW accumulate join"),
    "an operation without queue": (["plan", "queues", "work"], DROP, "work has no queue"),
    "a queue for an unknown op": (["plan", "queues", "x"], "in", "x is not an operation"),
    "no slot": (["plan", "slots", "t"], 0, "plan.slots['t']: 0 is less than 1"),
    "a wait on another queue": (["plan", "waits", 0, "queue"], "out", "runs on in, not on out"),
    "a count of a strange loop": (["plan", "waits", 0, "count", "terms"], {"m": 1}, "none of the"),
    "a count that is none": (["plan", "waits", 0, "count"], 1, "expected an object"),
    "a wait's long distance": (["plan", "waits", 0, "distance"], [0, 0], "expected 1 numbers"),
    "a stage of an unknown op": (["plan", "stages"], [["x"]], "x is not an operation"),
    "a prefetch of no loop": (["plan", "prefetch"], {"m": 1}, "m is not a loop"),
    "a prefetch beyond all places": (["plan", "prefetch"], {"k": 777}, "ask for 778 places"),
    "a claim of no loop": (["claims"], [{"loop": "m", "claim": "parallel"}], "m is not a loop"),
    "a pipeline without depth": (["claims"], [{"loop": "k", "claim": "pipeline"}],
                                 "claims[0]: no depth"),
    "a claim of its own": (["claims"], [{"loop": "k", "claim": "fast"}],
                           "claims[0].claim: expected one of parallel"),
}  # fmt: skip


@pytest.mark.parametrize("path, value, message", WRONG.values(), ids=WRONG)
def test_a_wrong_file_is_rejected_with_the_place(pipeline, path, value, message):
    file = copy.deepcopy(pipeline)
    set_in(file, path, value)
    with pytest.raises(PlanFileError) as caught:
        read_plan_file(json.dumps(file))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text, message",
    {
        "{": "line 1, column 2: not JSON",
        "": "line 1, column 1: not JSON",
        "[]": "schema: expected 'tokenplan/1', got None",
        '{"a": 1, "a": 2}': "an object has 'a' twice",
        '{"schema": NaN}': "NaN is not a number in JSON",
        "[" * 100_000: "not JSON that can be read",
    }.items(),
    ids=["cut off", "empty", "a list", "a name twice", "not a number", "nested too deeply"],
)
def test_what_is_no_plan_at_all_is_rejected(text, message):
    with pytest.raises(PlanFileError) as caught:
        read_plan_file(text)
    assert message in str(caught.value)


def test_every_value_of_a_file_that_turns_into_nonsense_is_rejected_or_reported(made, pipeline):
    """Each leaf is replaced by nonsense of every type: never another exception."""
    for path in leaves(pipeline):
        for nonsense in (None, -1, 10**30, 0.5, "nonsense", [], {}, [[]], True):
            file = copy.deepcopy(pipeline)
            set_in(file, path, nonsense)
            try:
                made.check(file, random=2)
            except PlanFileError as rejected:
                assert str(rejected)


def leaves(value, path=()):
    found = {dict: lambda: value.items(), list: lambda: enumerate(value)}.get(type(value))
    if found is None:
        yield path
        return
    for name, inner in found():
        yield from leaves(inner, (*path, name))


def test_the_command_says_what_it_found_in_its_exit_code(pipeline, tmp_path, capsys):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(pipeline))
    assert main([str(file), "--mutate", "--interleavings"]) == 0
    said = capsys.readouterr()
    assert said.out.endswith("all of it holds\n") and said.err == ""

    pipeline["edges"].pop(0)
    pipeline["stats"]["kept"] -= 1
    file.write_text(json.dumps(pipeline))
    assert main([str(file), "--output-format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert not said["ok"]
    assert (said["findings"][0]["code"], said["findings"][0]["from"]) == ("E1", "load")

    file.write_text("{}")
    assert main([str(file)]) == 2
    assert "schema: expected 'tokenplan/1', got None" in capsys.readouterr().err
    assert main([str(tmp_path / "none.json")]) == 2
    for wrong in (["--trips", "k"], ["--random", "-1"]):
        with pytest.raises(SystemExit) as stopped:
            main([str(file), *wrong])
        assert stopped.value.code == 2


def test_a_name_cannot_command_the_terminal(pipeline, tmp_path, capsys):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(pipeline | {"kernel": "\x1b[2Jname\n"}))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.startswith(r"\x1b[2Jname\x0a: ")


def test_fewer_trips_are_said_in_the_report(pipeline, tmp_path, capsys):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(pipeline))
    assert main([str(file), "--trips", "k=2"]) == 0
    assert "at reduced trip counts only: k=2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--random", "x"], "'x' is not a whole number of at most 9 digits"),
        (["--seed", "-1"], "'-1' is not a whole number of at most 9 digits"),
        (["--trips", "k"], "'k' is not LOOP=N, such as i=4"),
    ],
)
def test_a_mistake_in_an_option_names_what_is_expected(words, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["plan.json", *words])
    assert message in capsys.readouterr().err
