"""sys.modules is one for all threads and tasks: who may set the switch, and who is rejected."""

from __future__ import annotations

import asyncio
import importlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from nki_runtime import SwitchError, current, use


@pytest.fixture
def worker():
    """Runs a function in a thread called `worker-0`; the thread lives on between calls."""
    with ThreadPoolExecutor(1, thread_name_prefix="worker") as pool:
        yield lambda function, *args, **kw: pool.submit(function, *args, **kw).result(30)


def test_another_choice_from_a_second_thread_names_both_choices_and_the_thread(worker, modules):
    with use("beta2", target="trn2"):
        inside = modules()
        with pytest.raises(SwitchError) as error:
            worker(use, "beta1", target="trn1")
        assert modules() == inside

    text = str(error.value)
    assert "another choice is in force in thread 'MainThread'" in text
    assert "expected: beta2 0.6 on trn2, as in force there" in text
    assert "got:      beta1 0.1 on trn1, asked for by thread 'worker_0'" in text


def test_options_are_part_of_the_choice(worker):
    with use("beta2"), pytest.raises(SwitchError, match="with precise=False"):
        worker(use, "beta2", precise=False)


def test_a_second_thread_shares_the_same_choice(worker, modules):
    with use("beta2", target="trn3"):
        inside = modules()
        switch = worker(use, "beta2")
        assert switch.choice.target == "trn3"
        worker(switch.close)
        assert modules() == inside

    assert modules() == {}


def test_the_last_thread_to_leave_restores(worker, modules):
    with use("beta2"):
        switch = worker(use)
    assert "nki" in modules()

    worker(switch.close)
    assert modules() == {}


def test_nothing_else_is_set_inside_while_another_thread_shares(worker):
    with use("beta2"):
        switch = worker(use)
        with pytest.raises(SwitchError, match="another choice is in force in thread 'worker_0'"):
            use("beta1")
        worker(switch.close)


def test_leaving_an_inner_language_that_a_thread_still_uses_is_an_error(worker, modules):
    with use(nki="0.2"):
        inner = use(nki="0.6")
        switch = worker(use)
        with pytest.raises(SwitchError, match=r"thread 'worker_0' still uses beta2 0\.6"):
            inner.close()
        worker(switch.close)
        assert importlib.import_module("nki").choice.nki == "0.2"

    assert modules() == {}


def test_leaving_with_an_exception_keeps_the_exception_and_notes_the_thread(worker):
    with use(nki="0.2"):
        with pytest.raises(ZeroDivisionError) as error, use(nki="0.6"):
            switch = worker(use)
            raise ZeroDivisionError
        worker(switch.close)

    assert "thread 'worker_0' still uses beta2 0.6" in error.value.__notes__[0]


def test_a_thread_that_is_gone_holds_nothing(modules):
    left = []
    thread = threading.Thread(target=lambda: left.append(use("beta1")))
    thread.start()
    thread.join()

    assert current() == left[0].choice
    with use("beta2") as switch:
        assert switch.choice.backend == "beta2"
    left[0].close()
    assert modules() == {}


def test_a_kernel_thread_sees_the_choice_of_the_process(worker):
    with use("beta2") as switch:
        assert worker(current) == switch.choice


def test_many_threads_set_the_same_choice_at_once(modules):
    start = threading.Barrier(8)

    def work():
        start.wait(30)
        for _ in range(50):
            with use("beta2"):
                assert importlib.import_module("nki").choice.backend == "beta2"
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(f.result(60) for f in [pool.submit(work) for _ in range(8)])

    assert modules() == {}


def test_tasks_of_one_thread_follow_their_own_context():
    async def inner():
        return current()

    async def main():
        with use("beta1") as switch:
            first = asyncio.create_task(inner())
            await asyncio.sleep(0)
            return await first, switch.choice

    inside, around = asyncio.run(main())
    assert inside == around


def test_two_tasks_with_different_choices_are_rejected_like_two_threads():
    async def hold(backend, entered, leave):
        with use(backend):
            entered.set()
            await leave.wait()

    async def main():
        entered, leave = asyncio.Event(), asyncio.Event()
        holder = asyncio.create_task(hold("beta2", entered, leave))
        await entered.wait()
        with pytest.raises(SwitchError, match="in force in another task of thread 'MainThread'"):
            use("beta1")
        leave.set()
        await holder

    asyncio.run(main())
