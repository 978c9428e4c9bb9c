"""The strict look at a value before it is encoded.

msgspec alone would write NaN as null, `{1: …, "1": …}` as a duplicate key, and integers
that other readers cannot hold. This walk refuses what would not come back as it went in,
and says where it is. It also bounds work: depth, and a lower bound of the encoded size, so
that a value which contains itself, or shares one big part many times, ends here.

It never changes a value and never encodes one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.core.payload.adapter import to_plain
from holdfast.core.secret import Secret

__all__ = ["MAX_DEPTH", "TooLarge", "Unsound", "Walk"]

MAX_DEPTH: Final = 100
"""How deep containers may nest."""

_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**63 - 1
_SAFE: Final = frozenset({date, time, timedelta, UUID, Decimal})
_BYTES: Final = (bytes, bytearray, memoryview)
_KEEP: Final = (datetime, date, time, timedelta, UUID, Decimal, bytes)


class Unsound(Exception):
    """Why a value cannot be stored, and where in it; `path` is built innermost first."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str | int] = []

    def where(self, root: str) -> str:
        """The path to the culprit, from `root` down: `kwargs.lines[3].price`."""
        text = root
        for step in reversed(self.path):
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                text += f".{step}" if step.isidentifier() else f"[{step!r}]"
        return text


class TooLarge(Exception):
    """The value is certainly larger than the limit."""


class Walk:
    """One look at one value, or at the arguments of one call.

    `unordered` tells afterwards whether something was met whose order is not its own: a
    set, or an object that may hold one. `special` tells whether something was met that JSON
    has no type of its own for, so that only an annotation brings it back as it was.
    """

    __slots__ = ("_left", "special", "unordered")

    def __init__(self, limit: int) -> None:
        self._left = limit
        self.special = False
        self.unordered = False

    def check(self, value: Any, depth: int = MAX_DEPTH) -> None:
        """Raise `Unsound` or `TooLarge`, or return."""
        kind = type(value)
        if kind is str:
            if not value.isascii():
                _check_text(value)
            self._left -= len(value)
        elif kind is int:
            if not _INT_MIN <= value <= _INT_MAX:
                raise Unsound("is an integer beyond 64 bits: send it as a string")
        elif kind is bool or value is None:
            pass
        elif kind is dict:
            self._check_mapping(value, depth)
        elif kind is list:
            self.check_items(value, depth)
        elif kind is float:
            if not math.isfinite(value):
                raise Unsound(f"is {value}, which JSON cannot hold: send None or a string")
        else:
            self._check_other(value, depth)
        if self._left < 0:
            raise TooLarge

    def check_items(self, items: Collection[Any], depth: int = MAX_DEPTH + 1) -> None:
        """Look at each; the place of a culprit is noted in its `Unsound`."""
        self._spend(len(items), depth)
        check = self.check
        index = 0
        try:
            for item in items:
                # Most items are numbers and short texts, and a call takes longer than a look.
                kind = type(item)
                if kind is int:
                    if not _INT_MIN <= item <= _INT_MAX:
                        check(item)
                elif kind is str and item.isascii() and len(item) <= self._left:
                    self._left -= len(item)
                elif kind is not bool and item is not None:
                    check(item, depth - 1)
                index += 1
        except Unsound as unsound:
            unsound.path.append(index)
            raise

    def _check_mapping(self, mapping: Mapping[Any, Any], depth: int) -> None:
        self._spend(2 * len(mapping), depth)
        check = self.check
        exact = True
        key: Any = None
        try:
            for key, item in mapping.items():
                if type(key) is not str:
                    exact = False
                    self.special = True
                    if not isinstance(key, str):
                        raise Unsound(
                            f"has the key {key!r}, and JSON has only string keys: use str(key)"
                        )
                if not key.isascii():
                    _check_text(key)
                check(item, depth - 1)
        except Unsound as unsound:
            if isinstance(key, str):
                unsound.path.append(key)
            raise
        if not exact and len({str.__str__(key) for key in mapping}) < len(mapping):
            raise Unsound("has keys that become the same string")

    def _check_other(self, value: Any, depth: int) -> None:
        self.special = True
        if type(value) in _SAFE:
            pass
        elif isinstance(value, datetime):
            _check_zone(value)
        elif isinstance(value, _BYTES):
            self._left -= len(value)
        elif isinstance(value, Enum):
            self.check(value.value, depth)
        elif isinstance(value, set | frozenset):
            self.unordered = True
            self.check_items(value, depth)
        elif isinstance(value, list | tuple):
            self.check_items(value, depth)
        elif isinstance(value, dict):
            self._check_mapping(value, depth)
        elif isinstance(value, Secret):
            self._check_secret(value, depth)
        elif isinstance(value, str | int | float | PurePath):
            self.check(to_plain(value), depth)
        else:
            self.unordered = True
            self.check(_open(value), depth)

    def _check_secret(self, secret: Secret[Any], depth: int) -> None:
        try:
            self.check(secret.reveal(), depth - 1)
        except Unsound:
            pass
        else:
            return
        # What is wrong with it could tell what it is.
        raise Unsound("is a Secret whose value cannot be written as JSON: give it a text")

    def _spend(self, size: int, depth: int) -> None:
        if depth <= 0:
            raise Unsound(f"is nested deeper than {MAX_DEPTH} levels, or contains itself")
        self._left -= size
        if self._left < 0:
            raise TooLarge


def _open(value: Any) -> Any:
    """The fields of a dataclass, Struct, model…, as plain data."""
    try:
        return msgspec.to_builtins(value, builtin_types=_KEEP, enc_hook=to_plain)
    except RecursionError:
        raise Unsound(f"is nested deeper than {MAX_DEPTH} levels, or contains itself") from None
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        kind = type(value).__qualname__
        inner = str(error)
        what = f"is of type {kind}" if inner in ("", kind) else f"is a {kind} ({inner})"
        raise Unsound(
            f"{what}, which cannot be written as JSON: "
            "send plain data, a dataclass or a pydantic model"
        ) from error


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unsound(
            f"has half of a surrogate pair at position {error.start}, which is no text: "
            "decode it properly, or send bytes"
        ) from None


def _check_zone(moment: datetime) -> None:
    offset = moment.utcoffset()
    if offset is None:
        raise Unsound(
            f"is the datetime {moment} without a time zone: "
            "use datetime.now(timezone.utc), or call .astimezone() on it"
        )
    if offset.seconds % 60 or offset.microseconds:
        raise Unsound(
            f"is the datetime {moment}, whose offset has seconds: use .astimezone(timezone.utc)"
        )
