"""A route of the API, made of a function: its signature is what the route takes and gives.

    @operation("GET", "/queues/{queue}", tag="queues")
    async def show_queue(context: Context, queue: str) -> QueueDocument: ...

Owns the reading of paths, queries and bodies, and the sentence that says where one is wrong.
Parameters named as those of the path are read from there; `query` and `body` are structs; what is
returned is written as JSON. The OpenAPI document is made of the same signature, so the two cannot
differ.

Nothing that a request says is believed before it is read here: times stay in the calendar that the
databases share, texts hold no NUL, and numbers have limits (in the structs).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias, get_args, get_origin, get_type_hints

import msgspec
from starlette.responses import Response

from holdfast.core.text import one_line
from holdfast.web.access import Role
from holdfast.web.api.answer import json_answer
from holdfast.web.context import Context
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

__all__ = ["PREFIX", "Operation", "operation"]

PREFIX: Final = "/api/v1"
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]

SMALL: Final = 1_000_000
"""Bytes of a body, unless the operation says otherwise."""
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
_PARAMETER: Final = re.compile(r"{(\w+)}")
_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<key>key in )?\$(?P<path>.*)`)?$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What the document says of a route, and what reads its requests."""

    function: Callable[..., Awaitable[Any]]
    tag: str
    path: dict[str, Any]
    """The types of the parameters of its path."""
    query: type[msgspec.Struct] | None
    body: Any
    answer: Any
    """The type of what is returned; `Response`: a text."""
    creates: bool
    """It is answered with 201 if the answer's `created` is true."""
    refusals: tuple[int, ...]
    limit: Callable[[Context], int]

    @property
    def summary(self) -> str:
        """The first sentence."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def description(self) -> str:
        """What comes behind it."""
        rest = (self.function.__doc__ or "").strip().partition("\n")[2]
        return "\n".join(line.strip() for line in rest.strip().splitlines())

    async def __call__(self, context: Context) -> Response:
        """Read the request, do it, and write the answer."""
        given: dict[str, Any] = {
            name: _read_path(context.request.path_params[name], kind, name)
            for name, kind in self.path.items()
        }
        asked = context.request.query_params
        if self.query is not None:
            given["query"] = _read_query(list(asked.multi_items()), self.query)
        elif asked:
            raise _misfit(f"there is no parameter {next(iter(asked))!r:.100}", "")
        if self.body is not None:
            given["body"] = await _read_body(context, self.body, self.limit(context))
        answer = await self.function(context, **given)
        if isinstance(answer, Response):
            return answer
        return json_answer(answer, 201 if self.creates and answer.created else 200)


def operation(
    method: Method,
    path: str,
    *,
    tag: str,
    needs: Role | None = Role.READ,
    payloads: bool = False,
    creates: bool = False,
    refusals: Iterable[int] = (),
    limit: Callable[[Context], int] | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], WebRoute]:
    """Make a route of a function; `refusals` are the statuses that only this one answers with."""

    def decorate(function: Callable[..., Awaitable[Any]]) -> WebRoute:
        hints = get_type_hints(function, include_extras=True)
        about = Operation(
            function=function,
            tag=tag,
            path={name: hints[name] for name in _PARAMETER.findall(path)},
            query=hints.get("query"),
            body=hints.get("body"),
            answer=hints["return"],
            creates=creates,
            refusals=tuple(refusals),
            limit=limit or (lambda _: SMALL),
        )
        name = function.__name__.replace("_", "-")
        return WebRoute(
            PREFIX + path,
            (method,),
            about,
            needs=needs,
            name=f"api-{name}",
            kind="api",
            payloads=payloads,
            about=about,
        )

    return decorate


def _read_query(pairs: list[tuple[str, str]], kind: type[msgspec.Struct]) -> Any:
    several = {
        field.encode_name
        for field in msgspec.structs.fields(kind)
        if get_origin(field.type) in (list, tuple)
    }
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in several:
            given.setdefault(name, []).append(value)
        elif name in given:
            raise _misfit("is given twice", name)
        else:
            given[name] = value
    return _read(given, kind)


def _read_path(given: str, kind: Any, name: str) -> Any:
    try:
        return _read(given, kind, name)
    except Refusal:
        # What no task can be called, no task is called.
        raise Refusal(404, "not_found", f"there is none of the {name} {given!r:.100}") from None


def _read(given: Any, kind: Any, place: str = "") -> Any:
    """A value of a path or query, where everything is text."""
    try:
        found = msgspec.convert(given, kind, strict=False)
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        raise _said(error, place) from None
    _check(found, place)
    return found


async def _read_body(context: Context, kind: Any, limit: int) -> Any:
    stated = context.request.headers.get("content-type", "application/json")
    if stated.partition(";")[0].strip().lower() != "application/json":
        said = one_line(stated, 100)
        raise Refusal(415, "unsupported_type", f"the body must be application/json, not {said!r}")
    text = await context.body(limit) or b"{}"
    try:
        found = _decoder(kind).decode(text)
    except msgspec.ValidationError as error:
        raise _said(error) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise Refusal(400, "not_json", f"the body is no JSON: {error}") from None
    except RecursionError:
        raise _misfit("is nested too deeply", "") from None
    _check(found, "")
    return found


_decoders: Final[dict[int, msgspec.json.Decoder[Any]]] = {}


def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    # By identity: types are made once, with the routes, and some cannot be hashed.
    return _decoders.setdefault(id(kind), msgspec.json.Decoder(kind))


def _said(error: Exception, place: str = "") -> Refusal:
    read = _AT.match(str(error))
    what, path = (read["what"], read["path"]) if read else (str(error), None)
    return _misfit(what.replace("`", ""), (path or "").removeprefix(".") or place)


def _misfit(what: str, path: str) -> Refusal:
    said = f"{path}: {what}" if path else what
    return Refusal(422, "invalid", said, path=path)


def _check(value: Any, path: str) -> None:
    """Refuse texts and times that a database cannot hold. What is `Any` is a task's payload, which
    has checks of its own."""
    match value:
        case str():
            if "\x00" in value:
                raise _misfit("a NUL cannot be looked for or stored", path)
        case datetime():
            try:
                in_calendar = _EARLIEST <= value.astimezone(UTC) < _LATEST
            except OverflowError:
                in_calendar = False
            if not in_calendar:
                raise _misfit("is not between the years 1970 and 9000", path)
        case timedelta():
            pass
        case msgspec.Struct():
            for field in msgspec.structs.fields(value):
                if field.type is not Any and Any not in get_args(field.type):
                    inner = f"{path}.{field.encode_name}" if path else field.encode_name
                    _check(getattr(value, field.name), inner)
        case list() | tuple():
            for place, item in enumerate(value):
                _check(item, f"{path}[{place}]")
        case _:
            pass
