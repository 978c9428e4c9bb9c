"""Where the store is and how to reach it: one frozen value, validated once.

Owns the parsing of URLs. Never opens anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from holdfast.core.errors import ConfigError
from holdfast.core.redaction import redact

Engine: TypeAlias = Literal["sqlite", "postgresql"]
SqliteDriver: TypeAlias = Literal["apsw", "sqlite3"]

MEMORY = ":memory:"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_POSTGRES_SCHEMES = frozenset({"postgresql", "postgres", "postgis", "pgsql", "psql"})
"""With or without the driver that SQLAlchemy puts behind a plus sign: ours is psycopg anyway."""
_REMEDY = 'use "sqlite:///file.db" or "postgresql://user@host/database"'


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What `open_store` needs to know."""

    engine: Engine
    address: str
    """The file of a SQLite store (or ":memory:"), the conninfo URL of a PostgreSQL one."""
    schema: str | None = None
    driver: SqliteDriver | None = None
    """SQLite only: which library; None lets the first connection decide (apsw)."""
    durable: bool = True
    pooler: bool | None = None
    """PostgreSQL only: behind a transaction pooler, no session state; None finds out."""
    listen_url: str | None = None
    """PostgreSQL only: where to LISTEN, if not at `address`."""
    auto_migrate: bool | None = None
    """None: yes on SQLite, only an empty database on PostgreSQL."""
    max_connections: int = 5
    connect_timeout: float = 5.0
    statement_timeout: float = 30.0
    lock_timeout: float = 10.0
    allow_network_filesystem: bool = False
    clock: Callable[[], int] | None = None
    """SQLite only, for tests: the machine's clock in µs."""

    def __repr__(self) -> str:
        shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self)]
        return redact(f"StoreSettings({', '.join(shown)})")

    @property
    def in_memory(self) -> bool:
        return self.engine == "sqlite" and self.address == MEMORY

    @property
    def is_server(self) -> bool:
        """Whether a server decides who is answered, rather than who comes first at a file."""
        return self.engine != "sqlite"

    @property
    def masked(self) -> str:
        """The address, fit for a log: no password."""
        if self.engine == "sqlite":
            return f"sqlite:///{self.address}"
        return redact(self.address)


def parse_url(url: str, **given: Any) -> StoreSettings:
    """Read a store URL; keywords are the other fields of `StoreSettings`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise ConfigError(f"store URL {redact(url)!r} has no scheme: {_REMEDY}")
    dialect = scheme.lower().partition("+")[0]
    if dialect == "sqlite":
        settings = _sqlite(url, rest)
    elif dialect in _POSTGRES_SCHEMES:
        settings = _postgres(url, rest)
    else:
        raise ConfigError(
            f"store URL {redact(url)!r} has the unknown scheme {redact(scheme)!r}: {_REMEDY}"
        )
    if given.get("listen_url") is not None:
        given["listen_url"] = _direct_address(given["listen_url"])
    settings = replace(settings, **given)
    _check(settings)
    return settings


def listening_at(settings: StoreSettings, url: str) -> StoreSettings:
    """The same store, with another `listen_url`."""
    settings = replace(settings, listen_url=_direct_address(url))
    _check(settings)
    return settings


def _direct_address(url: str) -> str:
    """The conninfo of a `listen_url`, which is the URL of a PostgreSQL server."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower().partition("+")[0] not in _POSTGRES_SCHEMES:
        raise ConfigError(
            f"listen_url {redact(url)!r} is no URL of a PostgreSQL server: give one like "
            '"postgresql://user@host/database", which leads there directly',
            option="listen_url",
        )
    return _postgres(url, rest).address


def _sqlite(url: str, rest: str) -> StoreSettings:
    path, _, query = rest.partition("?")
    if not path.startswith("/"):
        raise ConfigError(
            f"store URL {redact(url)!r} names a host: a SQLite file has three slashes before a "
            'relative path ("sqlite:///tasks.db") and four before an absolute one'
        )
    path = path[1:]
    if not path or "\x00" in path:
        raise ConfigError(f"store URL {redact(url)!r} names no file: {_REMEDY}")
    return replace(StoreSettings("sqlite", path), **_options(url, query, {"driver", "durable"}))


def _postgres(url: str, rest: str) -> StoreSettings:
    try:
        parts = urlsplit(f"postgresql://{rest}")
        parts.port  # noqa: B018 - raises ValueError on a port that is no number
    except ValueError:
        raise _unreadable("its host or port makes no sense") from None
    # What libpq then takes for the host, the database or an option is a piece of the password,
    # and it would be quoted by whoever does not know it.
    if parts.netloc.count("@") > 1 or "@" in parts.path:
        raise _unreadable("it has an at sign too many")
    if parts.fragment or "#" in rest:
        raise _unreadable("it has a number sign")
    ours = {"schema", "pooler"}
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = _options(url, urlencode([p for p in pairs if p[0] in ours]), ours)
    theirs = urlencode([p for p in pairs if p[0] not in ours])
    address = urlunsplit(("postgresql", parts.netloc, parts.path, theirs, ""))
    if not parts.netloc:
        # urlunsplit drops the empty authority of "postgresql:///db?host=/run/sock".
        address = "postgresql://" + parts.path + (f"?{theirs}" if theirs else "")
    return replace(StoreSettings("postgresql", address), **options)


def _unreadable(why: str) -> ConfigError:
    # Neither the URL nor a piece of it: a password with a slash or an at sign in it is cut at the
    # wrong place.
    return ConfigError(
        f"the PostgreSQL URL cannot be read: {why} (percent-encode special characters in the "
        "user, the password and the database: @ is %40, / is %2F, # is %23)",
        option="url",
    )


def _options(url: str, query: str, known: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known:
            names = ", ".join(sorted(known))
            raise ConfigError(
                f"store URL {redact(url)!r}: unknown option {name!r}; there are {names}"
            )
        if name in ("durable", "pooler"):
            if value.lower() not in ("true", "false", "1", "0"):
                raise ConfigError(
                    f"store URL {redact(url)!r}: {name} is true or false, not {value!r}"
                )
            found[name] = value.lower() in ("true", "1")
        else:
            found[name] = value
    return found


def _check(settings: StoreSettings) -> None:
    if settings.schema is not None:
        if settings.engine == "sqlite":
            raise ConfigError("schema= is for PostgreSQL; a SQLite store is its file")
        if not _SCHEMA.fullmatch(settings.schema):
            raise ConfigError(
                f"schema {settings.schema!r} is not a plain lower-case identifier "
                "(letters, digits and underscores, at most 63)"
            )
    if settings.listen_url is not None and settings.engine == "sqlite":
        raise ConfigError("listen_url= is for PostgreSQL; a SQLite store is its file")
    if settings.driver not in (None, "apsw", "sqlite3"):
        raise ConfigError(f"driver {settings.driver!r} is unknown: use 'apsw' or 'sqlite3'")
    if settings.max_connections < 1:
        raise ConfigError(f"max_connections is {settings.max_connections}; it must be at least 1")
