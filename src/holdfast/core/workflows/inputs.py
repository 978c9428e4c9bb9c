"""Which arguments of a step other steps give: how that is stored, and how they are put in.

Owns the format of `StepPlan.inputs` and of `returns`. Stored is a reference, never the value:

    inputs    [[where, [kind, steps, path]], …]    where: [0, "rows"] in args, ["day"] in kwargs
    returns   [value, [[where, [kind, steps, path]], …]]

What is to be replaced is null in the stored arguments. A step that maps a task over a list has
`["map", settings]` first; its list is the first argument. Steps are places in the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from holdfast.core.errors import PayloadError
from holdfast.core.payload.codec import (
    Raw,
    decode,
    decoder,
    encode_value,
    from_json,
    split_array,
    split_object,
    to_json,
)
from holdfast.core.workflows.placeholder import Reference
from holdfast.core.workflows.value_kind import Key

__all__ = [
    "Fill",
    "Inputs",
    "Missing",
    "StoredFill",
    "ValueOf",
    "encode_inputs",
    "fill_arguments",
    "fill_template",
    "is_map",
    "part_of",
    "read_inputs",
    "template",
    "template_fills",
]

Where: TypeAlias = tuple[Key, ...]
_MAP: Final = "map"
_MAP_BEGINS: Final = f'[["{_MAP}",'


class Fill(NamedTuple):
    """A place in the arguments, and what is to stand there."""

    where: Where
    reference: Reference


class StoredFill(NamedTuple):
    """The same as it is stored."""

    where: list[Key]
    kind: str
    steps: list[int]
    path: list[Key]


ValueOf: TypeAlias = Callable[[StoredFill], Raw]
"""Finds the JSON of what is to stand at a place."""


class Inputs(NamedTuple):
    """What `inputs` says."""

    fills: list[StoredFill]
    map: Mapping[str, Any] | None
    """The settings of a map, if that is what the step is for."""


class Missing(Exception):
    """The value has no such part, or is gone."""


def encode_inputs(fills: Iterable[Fill], settings: Mapping[str, Any] | None = None) -> str | None:
    """The text of `StepPlan.inputs`; None if there is nothing to say. `settings` are of a map."""
    said: list[Any] = [] if settings is None else [[_MAP, settings]]
    said += _encoded(fills)
    return to_json(said) if said else None


def _encoded(fills: Iterable[Fill]) -> list[Any]:
    return [
        [fill.where, (fill.reference.kind, *fill.reference[2:3], fill.reference.path)]
        for fill in fills
    ]


def read_inputs(text: str) -> Inputs:
    """What is stored in `inputs`; `PayloadError` if it is not of this format."""
    settings: Mapping[str, Any] | None = None
    fills: list[Any] = []
    for entry in from_json(text):
        if entry[0] == _MAP:
            settings = entry[1]
        else:
            fills.append(entry)
    return Inputs(_read(fills), settings)


def is_map(text: str | None) -> bool:
    """Whether these are the inputs of a step that maps its task: its value is a list of results."""
    return text is not None and text.startswith(_MAP_BEGINS)


def _read(fills: Any) -> list[StoredFill]:
    try:
        return [StoredFill(where, *reference) for where, reference in fills]
    except (TypeError, ValueError) as error:
        raise PayloadError(f"which values a step takes cannot be read: {error}") from None


def template(cleaned: Any, fills: Iterable[Fill], limit: int) -> str:
    """The text of `returns`."""
    value = encode_value(cleaned, limit)
    return to_json([Raw(value.encode()), _encoded(fills)])


def template_fills(text: str) -> list[StoredFill]:
    """Which values `returns` takes."""
    return _read(decode(split_array(text)[1]))


def fill_template(text: str, value_of: ValueOf) -> str:
    """The value that `returns` stands for, as JSON."""
    value, fills = split_array(text)
    whole = {"": value}
    _put(whole, _read(decode(fills)), value_of, root="")
    return bytes(whole[""]).decode()


def fill_arguments(
    args: str, kwargs: str, fills: Sequence[StoredFill], value_of: ValueOf
) -> tuple[str, str]:
    """The arguments with everything in its place."""
    pieces: dict[Key, Raw] = dict(enumerate(split_array(args)))
    pieces.update(split_object(kwargs).items())
    _put(pieces, fills, value_of)
    positional = [piece for key, piece in pieces.items() if isinstance(key, int)]
    named = {key: piece for key, piece in pieces.items() if isinstance(key, str)}
    return to_json(positional), to_json(named)


def _put(
    pieces: dict[Any, Raw],
    fills: Sequence[StoredFill],
    value_of: ValueOf,
    root: Key | None = None,
) -> None:
    opened: dict[Key, Any] = {}
    for fill in fills:
        where = fill.where if root is None else [root, *fill.where]
        value = value_of(fill)
        first, *inner = where
        if not inner:
            pieces[first] = value
            continue
        if first not in opened:
            opened[first] = decode(pieces[first])
        place = opened[first]
        for key in inner[:-1]:
            place = place[key]
        place[inner[-1]] = value
    for key, value in opened.items():
        pieces[key] = Raw(to_json(value).encode())


_split_items: Final = decoder(list[Raw])
_split_fields: Final = decoder(dict[str, Raw])


def part_of(value: str | Raw, path: Sequence[Key], text: str) -> Raw:
    """A part of a stored value; `Missing` if it has none. `text` names the value for that."""
    piece = value if isinstance(value, Raw) else Raw(value.encode())
    for depth, key in enumerate(path):
        try:
            piece = _split_items(piece)[key] if isinstance(key, int) else _split_fields(piece)[key]
        except (PayloadError, LookupError):
            above = "".join(f"[{one!r}]" for one in path[:depth])
            raise Missing(f"{text}{above} has no [{key!r}]") from None
    return piece
