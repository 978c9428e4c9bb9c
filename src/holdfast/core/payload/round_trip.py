"""Whether a value comes back as the type it went in.

Owns the comparison of a value with what its stored text decodes to. Types travel by annotation,
so where there is none (or `Any`) a set would come back as a list, a Path as text: what changes so
is found here, with its place, and refused by whoever asked. Where the annotation names a type,
the value becomes that type, as asked; only bytes for a text are found there too, because nobody
means their base64.

A subclass of a plain type that is no enum, such as numpy's float64, Django's SafeString or an
OrderedDict, counts as the plain value: the codec stores it as that on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

from msgspec import inspect as kinds

__all__ = ["OpenType", "ValueChange", "find_bytes_as_text"]

_PLAIN: Final = (str, int, float, type(None))
_BYTES: Final = (bytes, bytearray, memoryview)
_ITEMS: Final = (kinds.ListType, kinds.VarTupleType, kinds.SetType, kinds.FrozenSetType)
_RECORDS: Final = (
    kinds.DataclassType,
    kinds.StructType,
    kinds.NamedTupleType,
    kinds.TypedDictType,
)
_ANY: Final = kinds.AnyType()


class ValueChange(NamedTuple):
    """A part of a value that would come back as another type."""

    path: str
    sent: Any
    back: Any

    @property
    def words(self) -> str:
        """What happens to it: "is a set and would arrive as a list"."""
        return f"is {_a(type(self.sent))} and would arrive as {_a(type(self.back))}"


class OpenType:
    """An annotation that leaves the type of some part open: `Any`, `list`, `dict[str, Any]`."""

    __slots__ = ("_info",)

    def __init__(self, info: kinds.Type) -> None:
        self._info = info

    @classmethod
    def of(cls, annotation: Any) -> OpenType | None:
        """The annotation if it is of that kind, otherwise None."""
        try:
            info = kinds.type_info(annotation)
        except (TypeError, ValueError, NameError):
            return None  # a type of its own, which the decoder handles or refuses
        return cls(info) if _holds_any(info, set()) else None

    def find_change(self, sent: Any, back: Any) -> ValueChange | None:
        """The first part of `sent` that is another type in `back`, and that the annotation
        says nothing about."""
        return _find(self._info, sent, back, "")


def find_bytes_as_text(sent: Any, back: Any, path: str = "") -> ValueChange | None:
    """The first bytes of `sent` that are text in `back`: their base64, which nobody meant."""
    if isinstance(sent, _BYTES):
        return ValueChange(path, sent, back) if isinstance(back, str) else None
    if isinstance(sent, dict) and isinstance(back, dict):
        return _first(
            find_bytes_as_text(item, back.get(key), path + _step(key)) for key, item in sent.items()
        )
    if isinstance(sent, list | tuple) and isinstance(back, list | tuple):
        pairs = enumerate(zip(sent, back, strict=False))
        return _first(find_bytes_as_text(s, b, f"{path}[{place}]") for place, (s, b) in pairs)
    return None


def _find(info: kinds.Type, sent: Any, back: Any, path: str) -> ValueChange | None:
    if _is_any(info):
        return _find_open(sent, back, path)
    if isinstance(info, _ITEMS):
        return _find_in_items(info.item_type, sent, back, path)
    if isinstance(info, kinds.TupleType):
        parts = enumerate(zip(info.item_types, sent, back, strict=False))
        return _first(_find(kind, s, b, f"{path}[{at}]") for at, (kind, s, b) in parts)
    if isinstance(info, kinds.DictType):
        return _find_in_mapping(info.key_type, info.value_type, sent, back, path)
    if isinstance(info, _RECORDS):
        return _first(
            _find(field.type, _part(sent, field.name), _part(back, field.name), _at(path, field))
            for field in info.fields
        )
    if isinstance(info, kinds.UnionType):
        for member in info.types:
            if _fits(member, back):
                return _find(member, sent, back, path)
    return find_bytes_as_text(sent, back, path)


def _find_open(sent: Any, back: Any, path: str) -> ValueChange | None:
    """The same where nothing is annotated: whatever has another type now, has changed."""
    if isinstance(sent, Enum):
        return ValueChange(path, sent, back)
    if isinstance(sent, _PLAIN):
        return None
    if isinstance(sent, dict):
        return _find_in_mapping(_ANY, _ANY, sent, back, path)
    if isinstance(sent, list):
        return _find_in_items(_ANY, sent, back, path)
    return ValueChange(path, sent, back)


def _find_in_items(kind: kinds.Type, sent: Any, back: Any, path: str) -> ValueChange | None:
    if isinstance(sent, set | frozenset):
        # No order to compare by; but a set's items are mostly of one type.
        odd = (item for item in sent if not isinstance(item, _PLAIN) or isinstance(item, Enum))
        item = next(odd, None) if _is_any(kind) else None
        return None if item is None else ValueChange(path, item, "")
    if not isinstance(sent, Iterable) or not isinstance(back, Iterable):
        return None
    pairs = enumerate(zip(sent, back, strict=False))
    return _first(_find(kind, s, b, f"{path}[{place}]") for place, (s, b) in pairs)


def _find_in_mapping(
    key_kind: kinds.Type, kind: kinds.Type, sent: Any, back: Any, path: str
) -> ValueChange | None:
    if not isinstance(sent, Mapping) or not isinstance(back, Mapping):
        return None
    for key, item in sent.items():
        place = path + _step(key)
        if isinstance(key, Enum) and _is_any(key_kind):
            return ValueChange(place, key, str(key.value))
        if key in back:
            change = _find(kind, item, back[key], place)
            if change is not None:
                return change
    return None


def _is_any(info: kinds.Type) -> bool:
    if isinstance(info, kinds.UnionType):
        return any(map(_is_any, info.types))
    return isinstance(info, kinds.AnyType) or (
        isinstance(info, kinds.CustomType) and info.cls is object
    )


def _fits(member: kinds.Type, back: Any) -> bool:
    """Whether this member of a union is the one that `back` was decoded as."""
    if isinstance(member, kinds.DictType | kinds.TypedDictType):
        return isinstance(back, dict)
    if isinstance(member, kinds.ListType):
        return isinstance(back, list)
    if isinstance(member, kinds.VarTupleType | kinds.TupleType):
        return isinstance(back, tuple)
    if isinstance(member, kinds.SetType | kinds.FrozenSetType):
        return isinstance(back, set | frozenset)
    return isinstance(member, _RECORDS) and isinstance(back, member.cls)


def _holds_any(info: kinds.Type, seen: set[int]) -> bool:
    if id(info) in seen:
        return False
    seen.add(id(info))
    if _is_any(info):
        return True
    for name in getattr(info, "__struct_fields__", ()):
        part = getattr(info, name)
        for child in part if isinstance(part, tuple) else (part,):
            inner = child.type if isinstance(child, kinds.Field) else child
            if isinstance(inner, kinds.Type) and _holds_any(inner, seen):
                return True
    return False


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _first(changes: Iterable[ValueChange | None]) -> ValueChange | None:
    return next((change for change in changes if change is not None), None)


def _at(path: str, field: kinds.Field) -> str:
    return f"{path}.{field.name}"


def _step(key: object) -> str:
    text = str(key)
    return f".{text}" if text.isidentifier() else f"[{text!r}]"


def _a(kind: type) -> str:
    name = kind.__name__
    return f"an {name}" if name[:1].lower() in "aeio" else f"a {name}"
