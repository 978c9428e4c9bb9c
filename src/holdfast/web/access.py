"""Who may do what: roles, visitors, and what a host's `access=` may answer.

Owns the order of the roles and the reading of answers. In doubt nobody is let in: an answer that
makes no sense is an error, and an error is no visitor.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeAlias

from starlette.requests import Request

from holdfast.core.errors import ConfigError

__all__ = ["PAYLOADS", "AccessRule", "Answer", "Role", "Visitor", "ask", "read_answer"]

PAYLOADS: Final = "payloads"
"""The word for payload viewing, beside the names of roles."""


class Role(IntEnum):
    """What a visitor may do; each may do what the ones before it may."""

    READ = 1
    """Look at everything but payloads."""
    OPERATE = 2
    """Also cancel, resubmit, reschedule, pause, resume, send."""
    ADMIN = 3
    """Also delete, stop workers, change limits, routes and schedules."""

    @property
    def word(self) -> str:
        """Its name, as answers and token files spell it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who was let in."""

    name: str
    """For the record of actions."""
    role: Role
    payloads: bool = False
    """Whether arguments, results, and what tasks print are shown."""

    def may(self, role: Role | None) -> bool:
        """Whether the visitor has at least this role."""
        return role is None or self.role >= role


Answer: TypeAlias = "Visitor | Role | str | Iterable[str] | None"
"""What `access=` returns: None (nobody), "read", "operate", "admin", several words with
"payloads", or a `Visitor`."""
AccessRule: TypeAlias = "Callable[[Request], Answer | Awaitable[Answer]]"


async def ask(rule: AccessRule, request: Request) -> Visitor | None:
    """Who this is, by the host's rule."""
    answer: Any = rule(request)
    if inspect.isawaitable(answer):
        answer = await answer
    return read_answer(answer, name=_name(request))


def read_answer(answer: Any, *, name: str) -> Visitor | None:
    """The visitor that an answer means; `ConfigError` if it means none."""
    if answer is None or isinstance(answer, Visitor):
        return answer
    if isinstance(answer, Role):
        return Visitor(name, answer)
    if isinstance(answer, bool) or not isinstance(answer, str | Iterable):
        raise _senseless(answer)
    words = [answer] if isinstance(answer, str) else list(answer)
    roles = {role.word: role for role in Role}
    for word in words:
        if word not in roles and word != PAYLOADS:
            raise _senseless(answer)
    found = [roles[word] for word in words if word != PAYLOADS]
    if not words:
        return None
    return Visitor(name, max(found, default=Role.READ), PAYLOADS in words)


def _senseless(answer: object) -> ConfigError:
    words = ", ".join(repr(role.word) for role in Role)
    return ConfigError(
        f"access answered {answer!r:.100}: it must answer None, {words}, some of these with "
        f"{PAYLOADS!r}, or a Visitor",
        option="access",
    )


def _name(request: Request) -> str:
    """The host's name for who asks, where its own authentication has left one."""
    user = request.scope.get("user")
    for attribute in ("display_name", "username", "name"):
        try:
            name = getattr(user, attribute, None)
        except Exception:  # noqa: BLE001 - Starlette's base class raises NotImplementedError
            continue
        if isinstance(name, str) and name.strip():
            return name
    return "a visitor"
