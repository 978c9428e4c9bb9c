"""What a request says, read into the types of its operation, or the sentence that says why not.

Owns the reading of paths, queries and bodies. A refusal names the place of what is wrong
(`options.tags[0]`), also where something below `app.control` found it (`placed`).

Nothing that a request says is believed before it is read here: times stay in the calendar that the
databases share, texts hold no NUL, and numbers have limits (in the structs).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

import msgspec

from holdfast.core.errors import ConfigError
from holdfast.core.redaction import redact
from holdfast.core.text import one_line
from holdfast.web.context import Context
from holdfast.web.problem import Refusal

__all__ = ["misfit", "placed", "read_body", "read_path", "read_query"]

_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<key>key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_FIELD: Final = re.compile(
    r"^Object (?:contains unknown|missing required) field `(.*)`$", re.DOTALL
)
_DATE: Final = re.compile(r"\d{4}-")
_STEP: Final = re.compile(r"\[[^]]*\]|[^.\[]+")
_LONGEST_PATH: Final = 1_000


def read_query(pairs: list[tuple[str, str]], kind: type[msgspec.Struct]) -> Any:
    """The parameters of a query; what may be given several times is a list."""
    types = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    given: dict[str, Any] = {}
    for name, value in pairs:
        if get_origin(types.get(name)) in (list, tuple):
            given.setdefault(name, []).append(value)
        elif name in given:
            raise misfit("is given twice", name)
        else:
            _check_text(value, types.get(name), name)
            given[name] = value
    return _read(given, kind)


def read_path(given: str, kind: Any, name: str) -> Any:
    """A parameter of a path."""
    try:
        return _read(given, kind, name)
    except Refusal:
        # What no task can be called, no task is called.
        raise Refusal(404, "not_found", f"there is none of the {name} {given!r:.100}") from None


async def read_body(context: Context, kind: Any, limit: int) -> Any:
    """The body, which is JSON."""
    stated = context.request.headers.get("content-type", "application/json")
    if stated.partition(";")[0].strip().lower() != "application/json":
        said = one_line(stated, 100)
        raise Refusal(415, "unsupported_type", f"the body must be application/json, not {said!r}")
    text = await context.body(limit) or b"{}"
    try:
        found = _decoder(kind).decode(text)
    except msgspec.ValidationError as error:
        raise _said(error, kind) from None
    except (msgspec.DecodeError, ValueError) as error:
        if _is_json(text):
            said = "the body holds half of a surrogate pair (\\ud800 to \\udfff), which is no text"
            raise misfit(said, "") from None
        raise Refusal(400, "not_json", f"the body is no JSON: {error}") from None
    except RecursionError:
        raise misfit("is nested too deeply", "") from None
    _check(found, "")
    return found


def misfit(what: str, path: str) -> Refusal:
    """A value does not fit, and where it stands."""
    said = f"{path}: {what}" if path else what
    return Refusal(422, "invalid", said, path=path[:_LONGEST_PATH])


@contextmanager
def placed(kind: type[msgspec.Struct], below: Mapping[str, str] | None = None) -> Iterator[None]:
    """Say of an option that the block refuses where it stands in a body: below `options`, if it is
    one of this struct; `below` names the places of others."""
    places = {field.encode_name: f"options.{field.encode_name}" for field in _fields(kind)}
    places |= below or {}
    try:
        yield
    except ConfigError as error:
        path = places.get(error.option or "")
        if path is None:
            raise
        raise Refusal(422, "invalid", redact(str(error)), path=path) from None
    except Refusal as refusal:
        path = places.get(refusal.problem.more.get("path", ""))
        if path is None or refusal.problem.kind != "invalid":
            raise
        raise Refusal(422, "invalid", refusal.problem.detail, path=path) from None


def _fields(kind: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)


def _read(given: Any, kind: Any, place: str = "") -> Any:
    """A value of a path or query, where everything is text."""
    try:
        found = msgspec.convert(given, kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        raise _said(error, kind, place) from None
    _check(found, place)
    return found


def _check_text(value: str, kind: Any, name: str) -> None:
    """Refuse what the lenient reading of texts would take for something else."""
    parts = _alternatives(kind)
    if datetime in parts and not _DATE.match(value):
        raise misfit("give a time with its zone, such as 2026-11-15T02:30:00Z", name)
    if type(None) in parts and str not in parts and value.strip().lower() == "null":
        raise misfit("null is no value here: leave it out", name)


_decoders: Final[dict[int, msgspec.json.Decoder[Any]]] = {}


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    # By identity: types are made once, with the routes, and some cannot be hashed.
    return _decoders.setdefault(id(kind), msgspec.json.Decoder(kind))


def _is_json(text: bytes) -> bool:
    """Whether only our stricter reading refuses it."""
    if b"\\u" not in text:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _said(error: Exception, kind: Any, place: str = "") -> Refusal:
    read = _AT.match(str(error))
    what, path = (read["what"], read["path"] or "") if read else (str(error), "")
    path = path.removeprefix(".") or place
    if field := _FIELD.match(what):
        path = f"{path}.{field[1]}" if path else field[1]
    if what.startswith("Invalid enum value") and (known := _choices(kind, path)):
        what = f"{what}; there are {', '.join(known)}"
    return misfit(what.replace("`", ""), path)


def _choices(kind: Any, path: str) -> list[str]:
    """What the value at this path of a type may be, where that is one of some words."""
    for step in _STEP.findall(path):
        inner: list[Any] = []
        for each in _alternatives(kind):
            if step.startswith("["):
                inner += get_args(each)[-1:]
            elif isinstance(each, type) and issubclass(each, msgspec.Struct):
                inner += [field.type for field in _fields(each) if field.encode_name == step]
        if not inner:
            return []
        kind = inner[0]
    found: list[str] = []
    for each in _alternatives(kind):
        if get_origin(each) is Literal:
            found += map(str, get_args(each))
        elif isinstance(each, type) and issubclass(each, Enum):
            found += [str(member.value) for member in each]
    return found


def _alternatives(kind: Any) -> list[Any]:
    """The types that a value may have, without what is only said of them."""
    if hasattr(kind, "__metadata__"):
        return _alternatives(kind.__origin__)
    if get_origin(kind) in (list, tuple, dict, Literal) or not get_args(kind):
        return [kind]
    return [part for each in get_args(kind) for part in _alternatives(each)]


def _check(value: Any, path: str) -> None:
    """Refuse texts and times that a database cannot hold. What is `Any` is a task's payload, which
    has checks of its own."""
    match value:
        case str():
            if "\x00" in value:
                raise misfit("a NUL cannot be looked for or stored", path)
        case datetime():
            try:
                in_calendar = _EARLIEST <= value.astimezone(UTC) < _LATEST
            except OverflowError:
                in_calendar = False
            if not in_calendar:
                raise misfit("is not between the years 1970 and 9000", path)
        case timedelta():
            pass
        case msgspec.Struct():
            for field in _fields(type(value)):
                if field.type is not Any and Any not in get_args(field.type):
                    inner = f"{path}.{field.encode_name}" if path else field.encode_name
                    _check(getattr(value, field.name), inner)
        case list() | tuple():
            for place, item in enumerate(value):
                _check(item, f"{path}[{place}]")
        case _:
            pass
