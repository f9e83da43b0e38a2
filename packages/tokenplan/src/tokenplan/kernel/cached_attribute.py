"""Attributes that are found when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class once(Generic[T]):  # noqa: N801 - read as the decorator that it is
    """`functools.cached_property` without the lock that Python 3.11 takes for each object."""

    def __init__(self, find: Callable[[Any], T]) -> None:
        self.find, self.name, self.__doc__ = find, find.__name__, find.__doc__

    @overload
    def __get__(self, found: None, owner: type) -> Self: ...
    @overload
    def __get__(self, found: object, owner: type) -> T: ...
    def __get__(self, found: object | None, owner: type) -> Self | T:
        if found is None:
            return self
        value = found.__dict__[self.name] = self.find(found)
        return value
