"""Best-so-far curves, side by side."""

from nkigym.search.report import CANDIDATES, SECONDS, best_by, curve_lines

FAST = ((0, 0.0, 90e3), (7, 0.2, 60e3), (400, 1.5, 50e3))
SLOW = ((0, 0.05, 90e3), (250, 4.0, 70e3))


def test_the_best_by_a_moment_is_the_least_so_far():
    assert [best_by(FAST, CANDIDATES, n) for n in (0, 6, 7, 1000)] == [90e3, 90e3, 60e3, 50e3]
    assert [best_by(FAST, SECONDS, s) for s in (0.1, 0.2, 2.0)] == [90e3, 60e3, 50e3]
    assert best_by(SLOW, SECONDS, 0.01) is None


def test_curves_are_columns_over_candidates_and_over_seconds():
    lines = curve_lines({"descent": FAST, "random": SLOW}, 400, 5.0)

    assert [line.split() for line in lines] == [
        ["best", "so", "far,", "µs,", "at", "descent", "random"],
        ["10", "candidates", "60.00", "90.00"],
        ["100", "candidates", "60.00", "90.00"],
        ["400", "candidates", "50.00", "70.00"],
        ["0.1", "s", "90.00", "90.00"],
        ["1", "s", "60.00", "90.00"],
        ["5", "s", "50.00", "70.00"],
    ]


def test_a_search_of_no_time_has_its_end():
    assert len([*curve_lines({"random": FAST}, 0, 0.0)]) == 1
