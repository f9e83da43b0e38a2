"""What the kernels of this folder compute, in NumPy."""

from __future__ import annotations

import numpy as np


def sum_of_rows(x, count):
    return x[: count.item()].astype(np.float64).sum(0, keepdims=True)


def every_second_row(x, first):
    result = x.copy()
    result[first.item() : 7 : 2] *= 2
    return result


def gather_rows(x, indices):
    return x[indices.ravel()]


def nested(x, lengths):
    return (x[:4].astype(np.float64) * lengths).sum(0, keepdims=True)


def triangle(x):
    x = x.astype(np.float64)
    return np.sum([x[i] * x[:i].sum(0) for i in range(1, 5)], axis=0, keepdims=True)


def _followed(following, place, turns):
    places = [place]
    for _ in range(turns):
        places.append(following[places[-1], 0])
    return places


def linked_list(x, following):
    *visited, end = _followed(following, 0, 5)
    return x[visited].astype(np.float64).sum(0, keepdims=True), np.array([[end]])


def carried_through_two_loops(x, following):
    return x[_followed(following, 1, 6)[2::2]]


def halve_until_zero(start):
    return np.array([[start.item().bit_length()]]), np.array([[0]])


def while_in_for(counts):
    return counts.sum(keepdims=True)


def for_in_while(x, counts):
    return counts.item() // 2 * x[:2].astype(np.float64).sum(0, keepdims=True)


def last_row(x, count):
    return x[count.item() - 1][None] + 1


def last_of_inner(x):
    return (x[2] + x[1])[None]


def last_product(x):
    return 2 * x.astype(np.float64).T @ x


def products(x):
    return 6 * x.astype(np.float64).T @ x


def squares(x):
    return np.arange(8)[:, None] ** 2


def through_a_helper(x, count):
    result = x.copy()
    for i in [*range(2, 6), *range(count.item())]:
        result[i] = i
    return result


def loops_in_python_loops(x):
    result = x.astype(np.float64)
    for part in range(2):
        result[4 * part : 4 * part + 4] *= 2 + part
        result += 3
    return result
