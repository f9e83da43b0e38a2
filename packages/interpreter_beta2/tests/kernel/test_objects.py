"""Classes that kernel code defines: the constructor that the compiler writes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import pytest

from neuroncore.errors import SignatureError
from neuroncore.instructions import KernelWarning
from nki_beta2 import BACKEND

PARSED = BACKEND.versions[: BACKEND.versions.index("0.6") + 1]


@pytest.fixture(params=PARSED)
def parsed(request, speak):
    """The versions whose compiler reads classes; from 0.7 on Python makes them."""
    return speak(request.param)


@pytest.fixture(params=[lambda cls: cls, dataclass], ids=["plain", "dataclass"])
def decorated(request):
    return request.param


def test_a_class_without_annotations_takes_its_fields_by_name(parsed, decorated):
    @decorated
    class Section(parsed.nl.NKIObject):
        index = None
        offset = 4

    made = Section(index=2)

    assert (made.index, made.offset) == (2, 4)


def test_annotated_fields_are_taken_in_order(parsed, decorated):
    @decorated
    class Config(parsed.nl.NKIObject):
        rows: int
        columns: int = 8

        def size(self):
            return self.rows * self.columns

    assert Config(2, 3).size() == 6
    assert Config(rows=2).size() == 16


def test_a_field_without_value_may_be_left_out(parsed, decorated):
    @decorated
    class Config(parsed.nl.NKIObject):
        rows: int
        columns: int

    made = Config(columns=3)

    assert made.columns == 3
    assert not hasattr(made, "rows")


def test_fields_of_a_base_come_first(parsed):
    @dataclass
    class Base(parsed.nl.NKIObject):
        a: int = 1

    @dataclass
    class Derived(Base):
        b: list = field(default_factory=list)

        def __post_init__(self):
            self.count = len(self.b)

    made = Derived(5, [1, 2])

    assert (made.a, made.b, made.count) == (5, [1, 2], 2)
    assert Derived().b is not Derived().b


@pytest.mark.parametrize(
    ("arguments", "named", "what"),
    [
        ((1, 2), {}, "takes 1 fields by position but 2 were given"),
        ((), {"wide": 1}, "unexpected keyword argument 'wide'"),
        ((1,), {"rows": 1}, "multiple values for argument 'rows'"),
    ],
)
def test_what_is_not_a_field_is_rejected(now, arguments, named, what):
    class Config(now.nl.NKIObject):
        rows: int

    with pytest.raises(TypeError, match=what):
        Config(*arguments, **named)


def test_a_constructor_of_its_own_is_kept(parsed):
    class Config(parsed.nl.NKIObject):
        def __init__(self, rows):
            self.twice = 2 * rows

    assert Config(3).twice == 6


def test_objects_are_equal_when_their_fields_are(parsed):
    class Config(parsed.nl.NKIObject):
        rows: int

    assert Config(1) == Config(1)
    assert Config(1) != Config(2)


def test_from_0_7_on_classes_are_those_of_python(speak):
    lang = speak("0.7")

    class Config(lang.nl.NKIObject):
        rows: int

    with pytest.raises(SignatureError, match="no constructor that takes fields") as raised:
        Config(rows=1)
    assert "@dataclass" in str(raised.value)
    assert vars(Config()) == {}


class Plain:
    def __init__(self, rows):
        self.rows = rows


@pytest.mark.parametrize(("rows", "words"), [(1, "equal fields made it True"),
                                             (2, "unequal fields made it False")])  # fmt: skip
def test_from_0_7_on_objects_are_compared_by_identity_and_that_is_a_warning(speak, rows, words):
    lang = speak("0.7")

    class Config(lang.nl.NKIObject, Plain):
        pass

    one = Config(1)
    with pytest.warns(KernelWarning, match=f"two Config objects is False: (.|\n)*{words}") as seen:
        assert (one == Config(rows)) is False
    assert seen[0].filename == __file__


def test_comparisons_that_mean_the_same_in_every_version_are_no_warning(speak, recwarn):
    lang = speak("0.7")

    @dataclass
    class Fields(lang.nl.NKIObject):
        rows: int

    class Own(lang.nl.NKIObject, Plain):
        def __eq__(self, other):
            return self.rows == other.rows

    class Config(lang.nl.NKIObject, Plain):
        pass

    one = Config(1)
    assert one == one and one != None and one != 3  # noqa: E711
    assert Fields(1) == Fields(1) and Own(1) == Own(1) and {one: 3}[one] == 3
    assert [*recwarn] == []


def test_a_dtype_is_one_value_of_a_dictionary(parsed):
    @dataclass
    class Config(parsed.nl.NKIObject):
        dtype: object

    assert asdict(Config(parsed.nl.bfloat16)) == {"dtype": parsed.nl.bfloat16}
