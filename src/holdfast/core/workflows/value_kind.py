"""What an annotation says about a value that does not exist yet.

Owns two questions of the builder of workflows: of which type is a part of a value (`member`), and
does a value of one type fit where another is wanted (`fits`). Both answer as a type checker would,
and give way where an annotation leaves something open: what is not refused here is still checked
when the value is there.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar, Union

from msgspec import Struct, structs

from holdfast.core.result import TaskError, TaskResult

__all__ = ["Key", "NoMember", "ValuePart", "fits", "item_kind", "member", "shown"]

Key: TypeAlias = str | int

_NONE: Final = type(None)
_SCALARS: Final = (str, int, float, bool, bytes, date, _NONE)
_WRAPPERS: Final = frozenset({typing.Required, typing.NotRequired, typing.Final, typing.ClassVar})


class ValuePart(NamedTuple):
    """A part of a value: where it stands in the stored JSON, and its type."""

    key: Key
    kind: Any


class NoMember(Exception):
    """A value of this type has no such part; the text says what it has instead."""


def bare(kind: Any) -> Any:
    """An annotation without what is wrapped around it: Annotated, NewType, aliases."""
    while True:
        origin = typing.get_origin(kind)
        if origin is Annotated or origin in _WRAPPERS:
            kind = typing.get_args(kind)[0]
        elif isinstance(kind, typing.NewType):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType" and not origin:
            kind = kind.__value__
        else:
            return _NONE if kind is None else kind


def _is_open(kind: Any) -> bool:
    """Whether nothing can be said about it."""
    if kind is Any or kind is object or isinstance(kind, TypeVar | str | typing.ForwardRef):
        return True
    return typing.get_origin(kind) is None and not isinstance(kind, type)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(kind) in (Union, types.UnionType)
    return tuple(map(bare, typing.get_args(kind))) if is_union else ()


def shown(kind: Any) -> str:
    """A type as its author wrote it, nearly."""
    if kind is None or kind is _NONE:
        return "None"
    parts = _alternatives(bare(kind))
    if parts:
        return " | ".join(map(shown, parts))
    args = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is not None and origin is not Literal and args:
        name = getattr(origin, "__name__", str(origin))
        return f"{name}[{', '.join(map(shown, args))}]"
    if isinstance(kind, type) and origin is None:
        return kind.__name__
    return "…" if kind is ... else str(kind).replace("typing.", "")


def item_kind(kind: Any) -> Any:
    """The type of the items of a list, a tuple, a set; `NoMember` if it has none."""
    kind = bare(kind)
    if _is_open(kind):
        return Any
    parts = _alternatives(kind)
    if parts:
        return _joined([item_kind(part) for part in parts])
    origin, args = typing.get_origin(kind) or kind, typing.get_args(kind)
    if not _is_sub(origin, Iterable) or _is_sub(origin, (str, bytes, Mapping)):
        raise NoMember(f"{shown(kind)} is no list")
    if origin is tuple and args and args[-1] is not ...:
        return _joined(args)
    return args[0] if args else Any


def member(kind: Any, key: Key, *, attribute: bool) -> ValuePart:
    """The part of a value that `.key` (an attribute) or `[key]` stands for."""
    kind = bare(kind)
    if _is_open(kind):
        return ValuePart(key, Any)
    parts = [part for part in _alternatives(kind) if part is not _NONE]
    if parts:
        return _of_union(kind, parts, key, attribute)
    origin, args = typing.get_origin(kind) or kind, typing.get_args(kind)
    if typing.is_typeddict(origin):
        return _field(kind, _hints(origin), key, attribute, wants=False)
    if _is_sub(origin, tuple) and hasattr(origin, "_fields"):
        return _of_named_tuple(kind, origin, key, attribute)
    if not attribute and _is_sub(origin, Mapping):
        return ValuePart(str(key), args[1] if len(args) == 2 else Any)
    if not attribute and _is_sub(origin, Sequence) and not _is_sub(origin, (str, bytes)):
        return _of_sequence(kind, origin, args, key)
    if origin is TaskError:
        hints = {**_hints(TaskError)}
        return _field(kind, hints, key, attribute, wants=True)
    if origin is TaskResult:
        raise NoMember("it is a TaskResult: take it apart inside a task")
    if _is_sub(origin, Struct):
        return _of_struct(kind, origin, key, attribute)
    if hasattr(origin, "model_fields"):
        return _of_model(kind, origin, key, attribute)
    if is_dataclass(origin):
        return _field(kind, _hints(origin), key, attribute, wants=True)
    if _is_sub(origin, _SCALARS) or _is_sub(origin, Iterable):
        raise NoMember(f"it is {shown(kind)}, of which a part is taken inside a task")
    return ValuePart(key, Any)


def _of_union(kind: Any, parts: list[Any], key: Key, attribute: bool) -> ValuePart:
    found: list[ValuePart] = []
    why = NoMember(f"it is {shown(kind)}")
    for part in parts:
        try:
            found.append(member(part, key, attribute=attribute))
        except NoMember as none:
            why = none
    if not found or len({one.key for one in found}) > 1:
        raise why
    return ValuePart(found[0].key, _joined([one.kind for one in found]))


def _of_named_tuple(kind: Any, origin: Any, key: Key, attribute: bool) -> ValuePart:
    names: tuple[str, ...] = origin._fields
    hints = _hints(origin)
    if attribute and key in names:
        place = names.index(str(key))
    elif not attribute and isinstance(key, int) and -len(names) <= key < len(names):
        place = range(len(names))[key]
    else:
        raise NoMember(f"the fields of {shown(kind)} are {', '.join(names)}")
    return ValuePart(place, hints.get(names[place], Any))


def _of_sequence(kind: Any, origin: Any, args: tuple[Any, ...], key: Key) -> ValuePart:
    if not isinstance(key, int):
        raise NoMember(f"it is {shown(kind)}, which has numbers for keys")
    if origin is tuple and args and args[-1] is not ...:
        if not -len(args) <= key < len(args):
            raise NoMember(f"it is {shown(kind)}, of {len(args)} items")
        return ValuePart(range(len(args))[key], args[key])
    return ValuePart(key, args[0] if args else Any)


def _of_struct(kind: Any, origin: type[Struct], key: Key, attribute: bool) -> ValuePart:
    fields = structs.fields(origin)
    found = _field(kind, {field.name: field.type for field in fields}, key, attribute, wants=True)
    names = [field.name for field in fields]
    if origin.__struct_config__.array_like:
        return ValuePart(names.index(str(key)), found.kind)
    return ValuePart(fields[names.index(str(key))].encode_name, found.kind)


def _of_model(kind: Any, origin: Any, key: Key, attribute: bool) -> ValuePart:
    fields: Mapping[str, Any] = origin.model_fields
    hints = {name: getattr(field, "annotation", Any) for name, field in fields.items()}
    found = _field(kind, hints, key, attribute, wants=True)
    field = fields[str(key)]
    alias = getattr(field, "serialization_alias", None) or getattr(field, "alias", None)
    return ValuePart(alias or found.key, found.kind)


def _field(
    kind: Any, hints: Mapping[str, Any], key: Key, attribute: bool, *, wants: bool
) -> ValuePart:
    if key in hints and attribute is wants:
        return ValuePart(key, hints[str(key)])
    if key in hints:
        raise NoMember(f"write .{key}" if wants else f"write [{key!r}]")
    raise NoMember(f"the fields of {shown(kind)} are {', '.join(hints)}")


def _hints(cls: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError):
        return dict.fromkeys(getattr(cls, "__annotations__", {}), Any)


def _joined(parts: Iterable[Any]) -> Any:
    found = tuple(dict.fromkeys(parts))
    if not found or Any in found:
        return Any
    return found[0] if len(found) == 1 else Union[found]  # noqa: UP007  (of a tuple)


def fits(given: Any, wanted: Any) -> bool:
    """Whether a value of one type may stand where the other is wanted."""
    given, wanted = bare(given), bare(wanted)
    if _is_open(given) or _is_open(wanted) or given == wanted:
        return True
    parts = _alternatives(given)
    if parts:
        return all(fits(part, wanted) for part in parts)
    parts = _alternatives(wanted)
    if parts:
        return any(fits(given, part) for part in parts)
    if typing.get_origin(given) is Literal:
        values = typing.get_args(given)
        if typing.get_origin(wanted) is Literal:
            return set(values) <= set(typing.get_args(wanted))
        return all(fits(type(value), wanted) for value in values)
    if typing.get_origin(wanted) is Literal:
        # A type checker would refuse it; the value decides.
        return any(fits(given, type(value)) for value in typing.get_args(wanted))
    return _class_fits(given, wanted)


def _class_fits(given: Any, wanted: Any) -> bool:
    have, need = typing.get_origin(given) or given, typing.get_origin(wanted) or wanted
    if typing.is_typeddict(have) or typing.is_typeddict(need):
        return have is need or (typing.is_typeddict(have) and need in (dict, Mapping))
    if have is datetime and need is date:
        return False  # its text is not that of a date
    if not _is_sub(have, need):
        return have in (int, bool) and need is float
    return _arguments_fit(have, need, typing.get_args(given), typing.get_args(wanted))


def _arguments_fit(have: Any, need: Any, given: tuple[Any, ...], wanted: tuple[Any, ...]) -> bool:
    if not given or not wanted:
        return True
    if have is tuple:
        fixed = given[-1] is not ...
        if need is tuple and wanted[-1] is not ...:
            if not fixed:
                return all(fits(given[0], want) for want in wanted)
            return len(given) == len(wanted) and all(map(fits, given, wanted))
        return all(fits(part, wanted[0]) for part in (given if fixed else given[:1]))
    if len(given) != len(wanted):
        return True
    return all(map(fits, given, wanted))


def _is_sub(kind: Any, of: Any) -> bool:
    try:
        return issubclass(kind, of)
    except TypeError:
        # A protocol, or no class at all: nothing can be said.
        return not isinstance(of, tuple) and of not in (Mapping, Sequence, Iterable)
