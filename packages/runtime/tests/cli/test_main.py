"""`nki-run` in a process of its own: what runs, what is printed, and the exit code."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
from typing import get_args, get_type_hints

import pytest

from neuroncore.options import Options

MODES = ("ignore", "warn", "error")
SAY = "import {0} as nki; print(nki.choice.backend, nki.choice.nki, nki.choice.target)"


@pytest.mark.parametrize(
    ("options", "text", "said"),
    [
        ([], SAY.format("nki"), "beta2 0.6 trn2"),
        ([], SAY.format("neuronxcc.nki"), "beta1 0.1 trn2"),
        (["--nki", "0.2", "--target", "gen2"], SAY.format("nki"), "beta2 0.2 trn1"),
        (["--backend", "beta1"], SAY.format("neuronxcc.nki"), "beta1 0.1 trn2"),
        (["--nki", "0.1"], SAY.format("neuronxcc.nki"), "beta1 0.1 trn2"),
        (["--option", "precise=false"], "import nki; print(nki.choice.options.precise)", "False"),
    ],
)
def test_the_program_runs_in_the_language_it_imports(options, text, said, nki_run, program):
    done = nki_run(*options, program(text))

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, said, "")


FROM_A_PIPE = """import sys
import neuronxcc.nki as nki
import beside
print(sys.argv, sys.stdin.read(), nki.choice.backend)
1 / 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="files in memory are of Linux")
@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0"])
@pytest.mark.parametrize("is_file", [False, True], ids=["pipe", "file"])
def test_a_program_from_a_pipe_runs_and_its_lines_are_shown(
    name, is_file, nki_run, program, tmp_path
):
    program("print('beside')", "beside.py")
    file = tmp_path / program(FROM_A_PIPE, "piped.txt")

    with file.open() as opened:
        done = nki_run(name, "x", stdin=opened if is_file else FROM_A_PIPE)

    shown = "/dev/stdin" if name == "-" else name
    assert (done.returncode, done.stdout) == (1, f"beside\n['{shown}', 'x']  beta1\n")
    assert f'File "{shown}", line 5, in <module>\n    1 / 0\n' in done.stderr


@pytest.mark.parametrize(
    ("module", "distribution"), [("nki", "nki-beta2"), ("neuronxcc.nki", "nki-beta1")]
)
def test_the_runtime_alone_names_what_to_install(module, distribution, program, tmp_path):
    name = program(f"import {module}\nprint('ran')")
    alone = "from nki_runtime.cli.main import main\nfrom nki_runtime.switch import registry\n"
    alone += f"registry._announced = lambda path: {{}}\nraise SystemExit(main([{name!r}]))"

    done = subprocess.run(
        [sys.executable, "-c", alone], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert f"is not installed: it is in {distribution}\n" in done.stderr
    assert f"pip install {distribution}\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_option_is_reached_with_every_kind_of_value(nki_run, program):
    given, wanted = [], {}
    for name, hint in get_type_hints(Options).items():
        value = get_args(hint)[-1] if get_args(hint) else False if hint is bool else 7
        given += ["--option", f"{name}={'none' if value is type(None) else value}"]
        wanted[name] = None if value is type(None) else value
    text = "import nki; o = nki.choice.options; print({n: getattr(o, n) for n in o.__slots__})"

    done = nki_run(*given, program(text))

    assert literal_eval(done.stdout) == wanted


def test_identity_tests_are_told_as_the_option_says(nki_run, program):
    text = "import nki\n@nki.jit\ndef k(x):\n    assert x is not None\n"
    run = ["--check", "subset", "--nki", "0.3", "--option"]

    kinds = {m: nki_run(*run, f"identity_test={m}", program(text)) for m in MODES}

    assert [kinds[m].returncode for m in MODES] == [0, 0, 1]
    assert ["`x is not None`" in kinds[m].stderr for m in MODES] == [False, True, True]


def test_a_program_that_imports_both_languages_has_both(nki_run, program):
    text = "\n".join([SAY.format("neuronxcc.nki"), SAY.format("nki")])

    done = nki_run("--nki", "0.3", program(text))

    assert done.stdout.splitlines() == ["beta1 0.1 trn2", "beta2 0.3 trn2"]


@pytest.mark.parametrize(
    ("module", "version", "message"),
    [
        ("neuronxcc.nki", "0.4", "no language that the program imports (neuronxcc) speaks NKI 0.4"),
        ("nki", "0.1", "no language that the program imports (nki) speaks NKI 0.1"),
        ("nki", "9", "no language that the program imports (nki) speaks NKI 9"),
    ],
)
@pytest.mark.parametrize("options", [["--nki", "{}"], ["--compare", "nki={}"]], ids=" ".join)
def test_a_version_that_nothing_imported_speaks_is_rejected(
    module, version, message, options, nki_run, program
):
    name = program(f"import {module}\nprint('ran')")

    done = nki_run(*(word.format(version) for word in options), name)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert ("expected: one of 0.1" if module != "nki" else "expected: one of 0.2, ") in done.stderr
    assert ("behind `import" in done.stderr) == (version != "9")
    assert "Traceback" not in done.stderr


def test_a_version_that_neither_of_two_languages_speaks_is_rejected(nki_run, program):
    done = nki_run("--nki", "9", program("import nki, neuronxcc.nki\nprint('ran')"))

    assert (done.returncode, done.stdout) == (2, "")
    assert "no language that the program imports (neuronxcc, nki) speaks NKI 9" in done.stderr
    assert "expected: one of 0.1, 0.2" in done.stderr


@pytest.mark.parametrize(
    ("options", "change"),
    [
        ([], "nki=0.6"),
        ([], "target=gen3"),
        ([], "precise=1"),
        ([], "backend=beta2"),
        (["--nki", "0.2"], "nki=0.2"),
    ],
)
def test_a_program_is_not_compared_with_itself(options, change, nki_run, program):
    done = nki_run(*options, "--compare", change, program("import nki\nprint('ran')"))

    assert (done.returncode, done.stdout) == (2, "")
    assert f"--compare {change} changes nothing" in done.stderr


def test_the_imports_of_neighbouring_files_count(nki_run, program):
    program("from neuronxcc import nki\nprint(nki.choice.backend)", "kernels.py")

    assert nki_run(program("import numpy, kernels")).stdout == "beta1\n"


def test_the_folder_of_the_program_takes_the_place_of_ours(nki_run, program, tmp_path):
    (tmp_path / "kernels").mkdir()
    program("from neuronxcc import nki", "kernels/old.py")
    name = program("import old, sys; print(old.nki.choice.nki, sys.path)", "kernels/run.py")

    done = nki_run(name)

    assert done.stdout.startswith(f"0.1 ['{tmp_path / 'kernels'}', ")
    assert f"'{tmp_path}'" not in done.stdout


def test_the_environment_wins_over_the_imports(nki_run, program):
    name = program(SAY.format("neuronxcc.nki"))

    assert nki_run(name, NKI_RUNTIME="beta1").stdout == "beta1 0.1 trn2\n"
    assert "No module named 'neuronxcc'" in nki_run(name, NKI_RUNTIME="beta2").stderr


def test_the_program_sees_what_python_would_show_it(nki_run, program, tmp_path):
    text = "import sys; print(__name__, __file__, sys.argv, sys.path[0], sys.modules['__main__'])"
    name = program(text)

    done = nki_run(name, "--nki", "mine", "-m", "--", "x")

    full = tmp_path / name
    argv = [name, "--nki", "mine", "-m", "--", "x"]
    assert done.stdout == f"__main__ {full} {argv} {tmp_path} <module '__main__' from '{full}'>\n"


def test_a_module_runs_as_after_python_m(nki_run, program, tmp_path):
    (tmp_path / "bench").mkdir()
    program("import neuronxcc.nki as n, sys; print(n.choice.nki, sys.argv[1:])", "bench/run.py")

    assert nki_run("-m", "bench.run", "-m", "x").stdout == "0.1 ['-m', 'x']\n"


def test_a_folder_with_a_main_runs(nki_run, program, tmp_path):
    (tmp_path / "tool").mkdir()
    program("import neuronxcc.nki as n, sys; print(n.choice.nki, sys.path[0])", "tool/__main__.py")

    assert nki_run("tool").stdout == f"0.1 {tmp_path / 'tool'}\n"


@pytest.mark.parametrize(
    ("text", "code", "stderr"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("raise SystemExit('no input')", 1, "no input\n"),
        ("import nki", 0, ""),
    ],
)
def test_the_exit_code_is_the_programs(text, code, stderr, nki_run, program):
    done = nki_run(program(text))

    assert (done.returncode, done.stderr) == (code, stderr)


KERNEL = """\
import nki


def kernel(tile):
    nki.reject(
        tile=tile)


kernel(3)
"""


def test_a_kernel_error_prints_its_text_and_the_users_lines_only(nki_run, program, tmp_path):
    done = nki_run(program(KERNEL))

    file = tmp_path / "program.py"
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Traceback (most recent call last; only your own lines):",
        f'  File "{file}", line 9, in <module>',
        "    kernel(3)",
        f'  File "{file}", line 5, in kernel',
        "    nki.reject(",
        f"ShapeError: {file}:5:5: moving free size 640 exceeds 512",
        "    nki.reject(",
        "    ^^^^^^^^^^^",
        "    expected: at most 512",
        "    got:      640",
    ]


def test_an_error_of_the_users_own_below_our_frames_shows_the_users_lines_only(nki_run, program):
    text = "import functools, neuroncore.commands.files as files, pathlib\n"
    text += "files.write_whole(pathlib.Path('x'), lambda path: 1 // 0)\n"

    done = nki_run(program(text))

    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "in <lambda>" in done.stderr
    assert "write_whole(file" not in done.stderr and "commands/files.py" not in done.stderr


def test_other_errors_print_as_python_prints_them(nki_run, program, tmp_path):
    done = nki_run(program("def f():\n    return 1 // 0\n\n\nf()\n"))

    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{tmp_path / "program.py"}", line 5, in <module>'
    assert lines[-1].startswith("ZeroDivisionError")


def test_a_hook_of_the_program_gets_its_errors(nki_run, program):
    hook = "import sys\nsys.excepthook = lambda *e: print('caught', e[0].__name__)\n"

    done = nki_run(program(hook + KERNEL))

    assert (done.returncode, done.stdout, done.stderr) == (1, "caught ShapeError\n", "")


def test_a_program_that_does_not_parse_shows_where(nki_run, program):
    done = nki_run(program("import nki\nx = (\n"))

    assert (done.returncode, done.stderr) == (
        2,
        "nki-run: program.py:2:5: not Python: '(' was never closed\n    x = (\n        ^\n",
    )


def test_threads_and_exit_handlers_still_have_the_language(nki_run, program):
    done = nki_run(
        program(
            "import atexit, threading, nki\n"
            "def late(): import nki.language; print(nki.language.choice.nki)\n"
            "def last(): threading.main_thread().join(); late()\n"
            "atexit.register(late); threading.Thread(target=last).start()\n"
        )
    )

    assert (done.stdout, done.stderr) == ("0.6\n0.6\n", "")


def test_a_report_without_a_reporter_names_the_package_to_install(program, tmp_path):
    without = (
        "import importlib.metadata, sys; importlib.metadata.entry_points = lambda **_: ()\n"
        "from nki_runtime.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", without, "--report=x.html", program("print('ran')")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install nki-scope" in done.stderr


def test_a_report_in_no_folder_is_rejected_before_the_run(nki_run, program):
    done = nki_run("--report=nowhere/x.html", program("print('ran')"))

    assert (done.returncode, done.stdout) == (2, "")
    assert "--report nowhere/x.html: no such folder nowhere" in done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "no program given"),
        (["-m"], "no program given"),
        (["nowhere.py"], "can't open 'nowhere.py': no such file"),
        (["/dev/null"], "can't open '/dev/null': not a regular file"),
        (["-m", "nowhere.at.all"], "can't run 'nowhere.at.all': no such module"),
        (["-m", "email"], "can't run 'email': it is a package without __main__"),
        (["--backend", "beta9", "program.py"], "nki-run: no backend is called 'beta9'"),
        (["--nki", "9", "program.py"], "does not speak NKI 9"),
        (["--target", "tpu", "program.py"], "unknown target 'tpu'"),
        (["--option", "precise", "program.py"], "--option precise has no value"),
        (["--option", "precise=no", "program.py"], "option precise is on or off"),
        (["--option", "usable_sbuf_bytes=big", "program.py"], "usable_sbuf_bytes is a size"),
        (["--option", "dynamic_turns=many", "program.py"], "dynamic_turns is a count"),
        (["--option", "nc_sub_version=2", "program.py"], "nc_sub_version does not take '2'"),
        (["--option", "uninitialized=7", "program.py"], "option uninitialized does not take '7'"),
        (["--option", "speed=7", "program.py"], "unknown option 'speed'"),
        (["--fast", "program.py"], "unrecognized arguments: --fast"),
        (["--chekc", "memory", "program.py"], "did you mean '--check'?"),
        (["--backend", "neuron", "program.py"], "vendor package not installed"),
    ],
)
def test_a_mistake_in_the_command_exits_2(args, message, nki_run, program):
    program("print('ran')")

    done = nki_run(*args)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_installed_nki_is_hidden_only_when_asked(nki_run, program, tmp_path):
    (tmp_path / "kernels").mkdir()
    program("made_by = 'another project'", "kernels/nki.py")
    name = program("import nki; print(nki)", "kernels/run.py")

    rejected, hidden = nki_run(name), nki_run("--shadow", name)

    assert rejected.returncode == 2
    assert "say use(..., shadow=True) (nki-run --shadow)" in rejected.stderr
    assert hidden.stdout == "<module 'nki'>\n"


def test_help_shows_examples(nki_run):
    done = nki_run("--help")

    assert done.returncode == 0
    assert "nki-run --nki 0.2 --target trn1 softmax.py" in done.stdout


def test_the_command_is_installed_beside_python():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="nki-run")
    with pytest.raises(SystemExit) as left:
        command.load()(["--help"])
    assert left.value.code == 0


STREAMS = {
    "closed": "print('hi'); sys.stdout.close()",
    "none": "print('hi'); sys.stdout = None",
    "detached": "print('hi'); sys.stdout.detach()",
    "without a flush": "print('hi'); sys.stdout = type('W', (), {'write': len})()",
    "of a failing flush": "class W:\n    def flush(self): 1 / 0\nprint('hi'); sys.stdout = W()",
    "the first one": "print('a'); sys.__stdout__.write('b\\n'); print('c')",
}


@pytest.mark.parametrize("text", STREAMS.values(), ids=STREAMS)
def test_a_program_may_do_with_stdout_what_it_likes(nki_run, program, tmp_path, text):
    name = program(f"import sys\n{text}")
    plain = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True)

    done = nki_run(name)

    assert done.stdout == plain.stdout
    assert done.returncode in (0, plain.returncode)
    assert "nki_runtime" not in done.stderr
    assert "neuroncore" not in done.stderr


def test_an_error_after_a_change_of_the_working_folder_is_the_programs(nki_run, program):
    """The source that ran is not read again, so that its warnings are shown once."""
    name = program("import os\nx = os.chdir('/')\nif x is 5: pass\nraise ValueError('mine')\n")

    done = nki_run(name)

    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: mine\n")
    assert "nki_runtime" not in done.stderr
    assert done.stderr.count("SyntaxWarning") == 1
