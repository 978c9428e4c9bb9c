"""A route of the API, made of a function: its signature is what the route takes and gives.

    @operation("GET", "/queues/{queue}", tag="queues")
    async def show_queue(context: Context, queue: str) -> QueueDocument: ...

Owns what a route is: its method, its path, who may ask. Parameters named as those of the path are
read from there; `query` and `body` are structs (`request_values.py` reads them); what is returned
is written as JSON. The OpenAPI document is made of the same signature, so the two cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_type_hints

import msgspec
from starlette.responses import Response

from holdfast.web.access import Role
from holdfast.web.api.answer import json_answer
from holdfast.web.api.request_values import misfit, read_body, read_path, read_query
from holdfast.web.context import Context
from holdfast.web.route import WebRoute

__all__ = ["PREFIX", "Operation", "operation"]

PREFIX: Final = "/api/v1"
Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]

SMALL: Final = 1_000_000
"""Bytes of a body, unless the operation says otherwise."""
_PARAMETER: Final = re.compile(r"{(\w+)}")


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
            name: read_path(context.request.path_params[name], kind, name)
            for name, kind in self.path.items()
        }
        asked = context.request.query_params
        if self.query is not None:
            given["query"] = read_query(list(asked.multi_items()), self.query)
        elif asked:
            raise misfit(f"there is no parameter {next(iter(asked))!r:.100}", "")
        if self.body is not None:
            given["body"] = await read_body(context, self.body, self.limit(context))
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
