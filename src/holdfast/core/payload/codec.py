"""The one codec of everything a task takes and gives: strict JSON text.

What is accepted comes back as it went in, and the answer is the same on every database,
because it is given here, before anything is written. Refused with a `PayloadError` that
says where: NaN and infinities, keys that are no strings, integers beyond 64 bits, halves of
surrogate pairs, datetimes without a zone, nesting over 100 levels, text over the limit.
NUL is accepted: JSON writes it as six plain characters.

Beyond JSON's own types: aware datetimes, dates, times, timedeltas, UUID, Decimal, enums,
bytes (base64), tuples, sets, dataclasses, NamedTuples, TypedDicts, msgspec Structs, paths
and pydantic models. They come back as their type where the annotation says so; where it says
nothing they are refused (`round_trip`). Nothing is pickled, and no class name travels.

User values are encoded and decoded with msgspec in `core.payload` only (here, in `check` and in
`adapter`); `msgspec.Struct` may be used anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeVar, get_args, overload

import msgspec

from holdfast.core.errors import PayloadError
from holdfast.core.payload.adapter import adapts, from_plain, is_secret, to_plain
from holdfast.core.payload.check import TooLarge, Unsound, Walk
from holdfast.core.secret import MARK, hide_secrets

__all__ = [
    "DEFAULT_LIMIT",
    "ArrayDecoder",
    "Raw",
    "canonical",
    "decode",
    "decoder",
    "encode_arguments",
    "encode_special",
    "encode_value",
    "from_json",
    "split_array",
    "split_object",
    "to_json",
    "to_show",
    "unsupported",
]

T = TypeVar("T")

DEFAULT_LIMIT: Final = 1_048_576
"""Largest encoded arguments, or result, in bytes."""

Raw = msgspec.Raw
"""A piece of JSON that has not been decoded yet."""

_NO_ARGS: Final = b"[]"
_encoder: Final = msgspec.json.Encoder(enc_hook=to_plain)
# Sets have no order of their own, and a repeated send must give the same bytes.
_sorting_encoder: Final = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic")


def encode_arguments(
    args: Sequence[Any], kwargs: Mapping[str, Any], limit: int = DEFAULT_LIMIT
) -> tuple[str, str, bool]:
    """The JSON of a call's positional and keyword arguments, together within `limit`; and
    whether something is among them that only an annotation brings back as it was."""
    walk = Walk(limit)
    root = "args"
    try:
        if args:
            walk.check_items(args)
        if kwargs:
            root = "kwargs"
            _check_named(walk, kwargs)
    except Unsound as unsound:
        _refuse(unsound, root)
    except TooLarge:
        _too_large("the arguments", limit)
    args_json = _encode(args, walk.unordered, "args") if args else _NO_ARGS
    if not kwargs:
        if len(args_json) + 2 > limit:
            _too_large("the arguments", limit, len(args_json) + 2)
        return args_json.decode(), "{}", walk.special
    kwargs_json = _encode(kwargs, walk.unordered, "kwargs")
    if len(args_json) + len(kwargs_json) > limit:
        _too_large("the arguments", limit, len(args_json) + len(kwargs_json))
    return args_json.decode(), kwargs_json.decode(), walk.special


def _check_named(walk: Walk, kwargs: Mapping[str, Any]) -> None:
    name = ""
    try:
        for name, value in kwargs.items():  # noqa: B007  (read when it fails)
            walk.check(value)
    except Unsound as unsound:
        unsound.path.append(name)
        raise


def encode_value(value: Any, limit: int = DEFAULT_LIMIT, *, name: str = "value") -> str:
    """The JSON of one value, such as a result; `name` is what errors call it."""
    return encode_special(value, limit, name=name)[0]


def encode_special(
    value: Any, limit: int = DEFAULT_LIMIT, *, name: str = "value"
) -> tuple[str, bool]:
    """The same, and whether only an annotation brings it back as it was."""
    walk = Walk(limit)
    try:
        walk.check(value)
    except Unsound as unsound:
        _refuse(unsound, name)
    except TooLarge:
        _too_large(f"the {name}", limit)
    text = _encode(value, walk.unordered, name)
    if len(text) > limit:
        _too_large(f"the {name}", limit, len(text))
    return text.decode(), walk.special


def _encode(value: Any, unordered: bool, name: str) -> bytes:
    try:
        return (_sorting_encoder if unordered else _encoder).encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        # The walk has passed it, so this is rare: a set that cannot be sorted, or an object
        # that answers differently when asked twice.
        raise PayloadError(
            f"{name} cannot be written as JSON ({error}): send plain data, and lists for sets "
            "of mixed types",
            path=name,
        ) from error


def _refuse(unsound: Unsound, root: str) -> NoReturn:
    path = unsound.where(root)
    raise PayloadError(f"{path} {unsound.problem}", path=path) from unsound.__cause__


def _too_large(what: str, limit: int, size: int | None = None) -> NoReturn:
    are, take = ("are", "take") if what.endswith("s") else ("is", "takes")
    how = f"{take} {size:,} bytes" if size is not None else f"{are} too large"
    raise PayloadError(
        f"{what} {how}, over the limit of {limit:,} bytes: store the data elsewhere and send "
        "a reference, or raise max_payload",
        problem="too_large",
    )


def decoder(kind: Any) -> Callable[[str | bytes | Raw], Any]:
    """A function that decodes JSON as `kind`, raising `PayloadError` where it does not fit.

    TypeError if `kind` is not a type that JSON can be decoded as.
    """
    read = msgspec.json.Decoder(kind, dec_hook=from_plain).decode

    def run(text: str | bytes | Raw) -> Any:
        try:
            return read(text)
        except _MISFITS as error:
            raise _misfit(error) from error

    return run


class ArrayDecoder:
    """Decodes a JSON array in one go, each item as its kind.

    The first `required` items must be there. Whoever needs to know what does not fit
    decodes the items one by one, in twenty times the time.
    """

    __slots__ = ("_read",)

    def __init__(self, kinds: Sequence[Any], required: int) -> None:
        shape = msgspec.defstruct(
            "Items",
            [
                (f"item_{place}", kind) if place < required else (f"item_{place}", kind, _ABSENT)
                for place, kind in enumerate(kinds)
            ],
            array_like=True,
            forbid_unknown_fields=True,
        )
        self._read = msgspec.json.Decoder(shape, dec_hook=from_plain).decode

    def fits(self, text: str | bytes) -> bool:
        """Whether `decode` would give something."""
        try:
            self._read(text)
        except _MISFITS:
            return False
        return True

    def decode(self, text: str | bytes) -> list[Any] | None:
        """The items; None where something does not fit."""
        try:
            items = msgspec.structs.astuple(self._read(text))
        except _MISFITS:
            return None
        return [item for item in items if item is not _ABSENT]


_ABSENT: Final = object()
_MISFITS: Final = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


@lru_cache(maxsize=512)
def _cached_decoder(kind: Any) -> Callable[[str | bytes | Raw], Any]:
    return decoder(kind)


@overload
def decode(text: str | bytes | Raw) -> Any: ...
@overload
def decode(text: str | bytes | Raw, kind: type[T]) -> T: ...
@overload
def decode(text: str | bytes | Raw, kind: Any) -> Any: ...
def decode(text: str | bytes | Raw, kind: Any = Any) -> Any:
    """Decode JSON as `kind`; `PayloadError` where it does not fit."""
    return _cached_decoder(kind)(text)


_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)


def _misfit(error: Exception) -> PayloadError:
    if isinstance(error, RecursionError):
        return PayloadError("is nested too deeply", problem="mismatch")
    read = _AT.match(str(error))
    what, path = (read["what"], read["path"]) if read else (str(error), None)
    what = what.replace("`", "")
    if not what[:2].isupper():
        # "Expected `int`" goes on behind a colon; "JSON" is a name.
        what = what[:1].lower() + what[1:]
    return PayloadError(what, path=path or None, problem="mismatch")


def unsupported(kind: Any) -> str | None:
    """Why values of this annotation cannot travel, or None if they can."""
    if is_secret(kind) and get_args(kind):
        return unsupported(get_args(kind)[0])
    try:
        info = msgspec.inspect.type_info(kind)
        msgspec.json.Decoder(kind)
    except (TypeError, ValueError, NameError) as error:
        return str(error)
    return _stranger(info, set())


def _stranger(info: Any, seen: set[int]) -> str | None:
    if id(info) in seen:
        return None
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        if adapts(info.cls):
            return None
        return f"{getattr(info.cls, '__qualname__', info.cls)} cannot be built from JSON"
    for name in getattr(info, "__struct_fields__", ()):
        part = getattr(info, name)
        for child in part if isinstance(part, tuple) else (part,):
            if isinstance(child, msgspec.inspect.Type | msgspec.inspect.Field):
                found = _stranger(child, seen)
                if found is not None:
                    return found
    return None


split_array: Callable[[str], list[Raw]] = decoder(list[Raw])
"""The pieces of a JSON array."""
split_object: Callable[[str], dict[str, Raw]] = decoder(dict[str, Raw])
"""The pieces of a JSON object."""


def canonical(text: str) -> str:
    """The same JSON with every object's keys in order, for hashing."""
    return _sorting_encoder.encode(decode(text)).decode()


def to_json(value: Any) -> str:
    """JSON of Holdfast's own small structures, which need no check."""
    return _encoder.encode(value).decode()


def from_json(text: str) -> Any:
    """Holdfast's own small structures, read back."""
    return decode(text)


def to_show(text: str) -> Any:
    """Stored values as plain data, to be shown: without secrets."""
    value = decode(text)
    return hide_secrets(value) if MARK in text else value
