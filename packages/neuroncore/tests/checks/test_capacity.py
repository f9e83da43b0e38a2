"""capacity: the fullest moment of SBUF and PSUM, and who holds it."""

from __future__ import annotations

import pytest

from neuroncore.options import Options


def tiles(count: int, columns: int, last_use: str) -> str:
    """`count` tiles of 4 * columns bytes per partition, written in turn, then used as said."""
    made = [f"t{i} = buffer(float32[128, {columns}], sbuf)" for i in range(count)]
    filled = [f"memset(dst=t{i}[:, :], value=0.0)" for i in range(count)]
    if last_use == "together":
        again = [f"tensor_copy(dst=t{i}[:, :], src=t{i}[:, :])" for i in range(count)]
        return "\n".join([*made, *filled, *again])
    return "\n".join(line for pair in zip(made, filled, strict=True) for line in pair)


SMALL = Options(usable_sbuf_bytes=4096)


@pytest.mark.parametrize(("columns", "over"), [(512, False), (513, True)])
def test_two_tiles_alive_together_share_the_memory(findings, columns, over):
    found = findings("capacity", tiles(2, columns, "together"), options=SMALL)

    assert bool(found) is over


def test_tiles_that_follow_one_another_do_not_add_up(findings):
    assert findings("capacity", tiles(8, 1024, "in turn"), options=SMALL) == ()


def test_the_holders_at_the_peak_are_named(findings):
    (found,) = findings("capacity", tiles(2, 513, "together"), options=SMALL)

    assert found.message == "4104 bytes per partition of SBUF are held at once"
    assert found.expected == "at most 4096 bytes per partition on trn2"
    assert found.got.startswith("t0 (128, 513) float32: 2052 (")
    assert "t1 (128, 513) float32: 2052 (" in found.got
    assert found.place.line == 4  # the allocation that reaches the peak


def test_an_unused_tensor_occupies_nothing(findings):
    body = "t = buffer(float32[128, 1024], sbuf)\n" + tiles(1, 1024, "together")

    assert findings("capacity", body.replace("t =", "unused ="), options=SMALL) == ()


@pytest.mark.parametrize(("count", "over"), [(8, False), (9, True)])
def test_psum_is_held_by_whole_banks(findings, count, over):
    body = tiles(count, 1, "together").replace("sbuf", "psum")

    found = findings("capacity", body)

    assert [f.message for f in found] == ["9 banks of PSUM are held at once"] * over


def test_tensors_at_one_address_count_once(findings):
    body = tiles(3, 1024, "together").replace("sbuf)", "sbuf, address=(0, 0))")

    assert findings("capacity", body, options=SMALL) == ()


def test_a_loop_frees_what_its_last_turn_held(findings):
    body = "for i in range(50):\n    t = buffer(float32[128, 1024], sbuf)\n"

    assert findings("capacity", body + "    memset(dst=t[:, :], value=0.0)", options=SMALL) == ()
