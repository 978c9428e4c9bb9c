"""Where the worker's own port listens.

Owns the reading of `HOST:PORT`. A port alone is one of this machine only: nobody should open a port
to a network by leaving something out.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from holdfast.core.errors import ConfigError

__all__ = ["HttpAddress", "as_address", "parse_http"]

LOOPBACK: Final = "127.0.0.1"
_FORM = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[\w.-]+):|:)?(?P<port>[0-9]{1,5})", re.A)


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """A host and a port; port 0: the system chooses one."""

    host: str
    port: int

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.host

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def at(self, port: int) -> str:
        """The same host with another port."""
        return str(HttpAddress(self.host, port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if self.is_ipv6 else self.host
        return f"{host}:{self.port}"


def parse_http(text: str) -> HttpAddress:
    """`127.0.0.1:9000`, `[::1]:9000`, or `9000`, which is that port of this machine alone."""
    found = _FORM.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise ValueError(f"HOST:PORT, for example {LOOPBACK}:9000, or a port")
    return HttpAddress((found["host"] or LOOPBACK).strip("[]"), int(found["port"]))


def as_address(given: object) -> HttpAddress:
    """An address as it was given by keyword or flag; `ConfigError` if it is none."""
    if isinstance(given, HttpAddress):
        return given
    try:
        return parse_http(given if isinstance(given, str) else "")
    except ValueError as wanted:
        raise ConfigError(f"http={given!r} is not usable: give {wanted}", option="http") from None
