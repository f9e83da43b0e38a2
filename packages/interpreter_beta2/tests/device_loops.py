"""Loops on the device by name: each calls a body so many times."""

import pytest


def by_dynamic_range(lang, body, turns=2):
    for _ in lang.nl.dynamic_range(turns):
        body()


def by_fori_loop(lang, body, turns=2):
    def turn(i):
        body()  # what it gives is not handed on: a turn returns nothing

    lang.nl.fori_loop(0, turns, turn)


def by_while_loop(lang, body, turns=2):
    left = lang.nl.full((1, 1), turns, lang.nl.int32)

    def turn(register):
        body()
        lang.nisa.tensor_scalar(left, left, lang.nl.subtract, 1.0)
        following = lang.nisa.register_alloc()
        lang.nisa.register_load(following, left)
        return following

    lang.nl.while_loop(lang.nisa.register_alloc(turns), turn)


LOOPS = {
    "nl.dynamic_range": by_dynamic_range,
    "nl.fori_loop": by_fori_loop,
    "nl.while_loop": by_while_loop,
}
every_loop = pytest.mark.parametrize("loop", LOOPS)
