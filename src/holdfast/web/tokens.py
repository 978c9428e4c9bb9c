"""The tokens that `holdfast web` lets in: one from the environment, or a file of hashed ones.

Owns the form of the file, the comparison (in constant time, over all tokens, whichever fits) and
the places where a request may bring one: `Authorization: Bearer TOKEN`, or the cookie that the
login sets. A token itself is never stored, logged or shown again.

A line of the file is a name, its roles, and the SHA-256 of the token:

    alice   operate,payloads   sha256:2c26b46b68ffc68ff99b453c1d304134...

A plain hash is enough because tokens are made by us, of 256 random bits: there is no list of
likely ones that could be tried against the file.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from starlette.requests import Request

from holdfast.core.errors import ConfigError
from holdfast.web.access import Role, Visitor, read_answer

__all__ = ["COOKIE", "KnownToken", "Tokens", "line_of", "new_token"]

COOKIE: Final = "holdfast_token"
SHORTEST: Final = 16
"""Of a token that somebody made up: HOLDFAST_WEB_TOKEN."""
_HASH: Final = re.compile(r"sha256:([0-9a-f]{64})")
_NAME: Final = re.compile(r"[\w.@+-]{1,100}")


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A token by its hash, and who has it."""

    digest: bytes
    visitor: Visitor


class Tokens:
    """Who may enter, by what."""

    def __init__(self, known: Iterable[KnownToken]) -> None:
        self._known = tuple(known)

    @classmethod
    def one(cls, token: str) -> Self:
        """One token for everything, as HOLDFAST_WEB_TOKEN has it."""
        if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
            raise ConfigError(
                f"HOLDFAST_WEB_TOKEN must be at least {SHORTEST} characters of plain ASCII: make "
                "one with `holdfast web --new-token NAME`",
                option="HOLDFAST_WEB_TOKEN",
            )
        return cls([KnownToken(_digest(token), Visitor("token", Role.ADMIN, payloads=True))])

    @classmethod
    def in_file(cls, path: Path) -> Self:
        """Those of a file."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            why = error.strerror or str(error)
            raise ConfigError(f"the tokens in {path} cannot be read: {why}") from None
        except ValueError:
            raise ConfigError(
                f"the tokens in {path} cannot be read: the file is not text in UTF-8"
            ) from None
        known = [
            _read_line(line, f"{path}, line {number}")
            for number, line in enumerate(text.splitlines(), 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        if not known:
            raise ConfigError(
                f"there is no token in {path}: make a line with `holdfast web --new-token NAME`"
            )
        return cls(known)

    def both(self, other: Tokens) -> Tokens:
        """These and those."""
        return Tokens((*self._known, *other._known))

    @staticmethod
    def brought_by(request: Request) -> str:
        """The token that a request brings; empty: none."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            token = request.cookies.get(COOKIE, "")
        return token.strip()

    def holder(self, token: str) -> Visitor | None:
        """Whose token this is."""
        digest = _digest(token)
        found: Visitor | None = None
        for known in self._known:
            if hmac.compare_digest(known.digest, digest):
                found = known.visitor
        return found


def new_token() -> str:
    """A token that nobody can guess."""
    return f"hf_{secrets.token_urlsafe(32)}"


def line_of(name: str, roles: str, token: str) -> str:
    """The line that lets this token in."""
    _check_name(name, "the new token")
    line = f"{name} {''.join(roles.split())} sha256:{_digest(token).hex()}"
    _read_line(line, "the new token")
    return line


def _read_line(line: str, place: str) -> KnownToken:
    parts = line.split()
    if len(parts) != 3:
        raise ConfigError(
            f"{place}: a line is a name, its roles and a hash, such as "
            "`alice operate,payloads sha256:…`"
        )
    name, roles, hashed = parts
    digest = _HASH.fullmatch(hashed)
    if digest is None:
        # Not quoted: somebody may have written the token itself.
        raise ConfigError(f"{place}: the hash is `sha256:` and 64 hexadecimal digits")
    _check_name(name, place)
    try:
        visitor = read_answer(roles.split(","), name=name)
    except ConfigError:
        raise ConfigError(
            f"{place}: {roles!r:.100} are no roles; there are read, operate, admin, and payloads"
        ) from None
    assert visitor is not None
    return KnownToken(bytes.fromhex(digest[1]), visitor)


def _check_name(name: str, place: str) -> None:
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{place}: the name {name!r:.100} is not of letters, digits and . _ @ + - (1 to 100)"
        )


def _digest(token: str) -> bytes:
    return sha256(token.encode(errors="surrogateescape")).digest()
