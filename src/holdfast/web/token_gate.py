"""Who a token lets in, and how many wrong ones an address may try.

Owns the count of wrong tokens by address. Only different ones count: a program that goes on with a
token that was withdrawn guesses nothing. An address that has tried too many is refused for the rest
of a minute whatever it brings, or it would see that it has found one. What is kept is bounded; each
process counts for itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.requests import Request

from holdfast.core.text import one_line
from holdfast.web.access import Visitor
from holdfast.web.problem import Refusal
from holdfast.web.tokens import Tokens

__all__ = ["MOST_WRONG", "TokenGate"]

MOST_WRONG: Final = 20
"""Different wrong tokens of one address in a minute."""
_WINDOW_S: Final = 60.0
_MOST_ADDRESSES: Final = 1_000
_log = logging.getLogger("holdfast.web")


class TokenGate:
    """Lets in who has a token, and nobody who tries many."""

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = tokens
        self._clock = clock
        self._since = clock()
        self._wrong: dict[str, set[bytes]] = {}

    def visitor(self, request: Request) -> Visitor | None:
        """Who sends this request, if it brings a token that we know."""
        return self.holder(request, Tokens.brought_by(request))

    def holder(self, request: Request, token: str) -> Visitor | None:
        """Whose token this is; `Refusal` where too many were tried."""
        if not token:
            return None
        now = self._clock()
        if now - self._since >= _WINDOW_S:
            self._since = now
            self._wrong.clear()
        address = _address(request)
        wrong = self._wrong.get(address, set())
        if len(wrong) >= MOST_WRONG:
            raise self._too_many(now)
        found = self._tokens.holder(token)
        if found is None and (wrong or len(self._wrong) < _MOST_ADDRESSES):
            wrong.add(sha256(token.encode(errors="surrogatepass")).digest())
            self._wrong[address] = wrong
            if len(wrong) == MOST_WRONG:
                _log.warning("%s has tried %d wrong tokens", one_line(address, 100), MOST_WRONG)
        return found

    def _too_many(self, now: float) -> Refusal:
        left = max(1, round(self._since + _WINDOW_S - now))
        return Refusal(
            429,
            "too_many_tokens",
            f"{MOST_WRONG} wrong tokens came from your address: try again in {left} s",
            {"Retry-After": str(left)},
        )


def _address(request: Request) -> str:
    """From where a request comes: of IPv6 the network, which may be one machine's."""
    host = "" if request.client is None else request.client.host
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return f"{IPv6Address(int(address) >> 64 << 64)}/64"
    return host
