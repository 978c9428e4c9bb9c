"""The settings of an app: one frozen value, read and checked once.

Owns the names, defaults and limits of settings, and the order of precedence: keyword,
environment (`HOLDFAST_` and the name in capitals), default. Reads no file, opens nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, TypedDict
from urllib.parse import parse_qsl

from holdfast.core.errors import ConfigError
from holdfast.core.options import setting_text
from holdfast.core.options.policy import DEFAULT_TIMEOUT
from holdfast.core.options.retention import Retention
from holdfast.core.payload.codec import DEFAULT_LIMIT
from holdfast.core.redaction import redact
from holdfast.store.settings import SqliteDriver, StoreSettings, parse_url

__all__ = ["Config", "Settings"]

DEFAULT_URL: Final = "sqlite:///holdfast.db"


class Settings(TypedDict, total=False):
    """The keywords of `Holdfast(url, …)`; what each means is said in `Config`."""

    schema: str | None
    driver: SqliteDriver | None
    durable: bool
    pooler: bool | None
    listen_url: str | None
    auto_migrate: bool | None
    max_connections: int
    connect_timeout: float
    statement_timeout: float
    lock_timeout: float
    allow_network_filesystem: bool
    send_timeout: float
    max_payload: int
    default_timeout: float | None
    lease: float
    grace: float
    kill_grace: float
    outage_grace: float
    retention: Retention
    redact_keys: Collection[str]


def _setting(
    default: Any,
    read: Callable[[str], Any],
    *,
    kind: type | tuple[type, ...] = str,
    least: float | None = None,
    most: float | None = None,
) -> Any:
    limits = {"least": least, "most": most}
    return field(default=default, metadata={"read": read, "kind": kind, **limits})


_NUMBER: Final = (int, float)
_LONGEST_WAIT: Final = 1_000_000
"""Seconds; SQLite and PostgreSQL count milliseconds in 32 bits."""
_NEVER: Final = type(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting of an app."""

    url: str = _setting(DEFAULT_URL, str)
    """Where the tasks are: `sqlite:///file.db` or `postgresql://host/database`."""
    schema: str | None = _setting(None, str, kind=(str, _NEVER))
    """PostgreSQL: the schema of the tables; None follows the connection's search path."""
    driver: SqliteDriver | None = _setting(None, str, kind=(str, _NEVER))
    """SQLite: the library to begin with; None is apsw. It follows what the process itself uses."""
    durable: bool = _setting(True, setting_text.flag, kind=bool)
    """False lets a crash of the machine lose the latest commits, and is quicker."""
    pooler: bool | None = _setting(None, setting_text.flag, kind=(bool, _NEVER))
    """PostgreSQL: through a transaction pooler such as PgBouncer; None finds out by itself."""
    listen_url: str | None = _setting(None, str, kind=(str, _NEVER))
    """PostgreSQL: a URL that leads to the server directly, to hear of tasks behind a pooler."""
    auto_migrate: bool | None = _setting(None, setting_text.flag, kind=(bool, _NEVER))
    """Upgrade an older schema on first use; None: on SQLite only."""
    max_connections: int = _setting(5, setting_text.whole, kind=int, least=1)
    """How many connections this process opens at the most."""
    connect_timeout: float = _setting(
        5.0, setting_text.seconds, kind=_NUMBER, least=0.001, most=_LONGEST_WAIT
    )
    """How long to try to connect to the server."""
    statement_timeout: float = _setting(
        30.0, setting_text.seconds, kind=_NUMBER, least=0.001, most=_LONGEST_WAIT
    )
    """How long one statement may take."""
    lock_timeout: float = _setting(
        10.0, setting_text.seconds, kind=_NUMBER, least=0.001, most=_LONGEST_WAIT
    )
    """How long a statement may wait for another transaction's lock."""
    allow_network_filesystem: bool = _setting(False, setting_text.flag, kind=bool)
    """SQLite: take a file on NFS or SMB, whose locks cannot be relied on."""
    send_timeout: float = _setting(5.0, setting_text.seconds, kind=_NUMBER, least=0)
    """How long a send tries to reach a database that is away; 0 tries once."""
    max_payload: int = _setting(DEFAULT_LIMIT, setting_text.whole, kind=int, least=2)
    """The largest arguments or result of one task, in bytes of JSON."""
    default_timeout: float | None = _setting(
        DEFAULT_TIMEOUT, setting_text.seconds_or_never, kind=(int, float, _NEVER), least=0.001
    )
    """The `timeout` of tasks that name none; None: never."""
    lease: float = _setting(
        30.0, setting_text.seconds, kind=_NUMBER, least=1, most=setting_text.LONGEST_INTERVAL
    )
    """Workers: how long a vanished worker keeps its tasks; renewed every third of it."""
    grace: float = _setting(30.0, setting_text.seconds, kind=_NUMBER, least=0)
    """Workers: how long running tasks may go on after the first signal to stop."""
    kill_grace: float = _setting(5.0, setting_text.seconds, kind=_NUMBER, least=0)
    """Workers: how long code that is told to end has before it is killed."""
    outage_grace: float = _setting(600.0, setting_text.seconds, kind=_NUMBER, least=0)
    """Workers: how long code goes on while the database says that it cannot serve."""
    retention: Retention = _setting(Retention(), setting_text.retention, kind=Retention)
    """How long ended tasks and other records are kept."""
    redact_keys: tuple[str, ...] = _setting((), setting_text.names, kind=tuple)
    """Keys of arguments and results whose values nobody is shown: `iban`, `card_*`. Those of
    `password`, `token` and the like are not shown anyway."""
    store: StoreSettings = field(init=False, repr=False)
    """What the store needs to know of this."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "redact_keys", _names(self.redact_keys))
        _check(self)
        object.__setattr__(self, "store", _store_settings(self))

    def __repr__(self) -> str:
        shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.init]
        return redact(f"Config({', '.join(shown)})")

    @classmethod
    def load(
        cls,
        url: str | None = None,
        keywords: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Config:
        """Put a configuration together from what was given and what is set."""
        environment = os.environ if environment is None else environment
        given = dict(keywords or {})
        if url is not None:
            given["url"] = url
        known = {setting.name: setting for setting in fields(cls) if setting.init}
        for name in given:
            if name not in known:
                names = ", ".join(sorted(known))
                raise ConfigError(f"there is no setting {name!r}; there are {names}", option=name)
        in_url = _stated_in(given.get("url"))
        for name in in_url & given.keys():
            raise ConfigError(f"{name} is given twice: in the URL and as a keyword", option=name)
        found = setting_text.in_environment(known.values(), environment, given.keys() | in_url)
        return cls(**found, **given)


def _names(given: Any) -> tuple[str, ...]:
    names = tuple(given) if isinstance(given, tuple | list | set | frozenset) else ("",)
    if not all(isinstance(name, str) and name for name in names):
        raise ConfigError(
            f"redact_keys is {given!r:.300}; it must be a list of names", option="redact_keys"
        )
    return names


def _check(config: Config) -> None:
    for setting in fields(config):
        if not setting.init:
            continue
        name, value = setting.name, getattr(config, setting.name)
        kind, least = setting.metadata["kind"], setting.metadata["least"]
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if type(value) not in kinds:
            wanted = " or ".join("None" if k is _NEVER else k.__name__ for k in kinds)
            raise ConfigError(f"{name} is {redact(repr(value))}; it must be {wanted}", option=name)
        # `not >=` instead of `<`: NaN must not pass.
        if least is not None and value is not None and not value >= least:
            raise ConfigError(f"{name} is {value!r}; it must be at least {least:g}", option=name)
        most = setting.metadata["most"]
        if most is not None and value > most:
            raise ConfigError(f"{name} is {value!r}; it must be at most {most:,}", option=name)


_OF_STORE: Final = Settings.__annotations__.keys() & {each.name for each in fields(StoreSettings)}


def _stated_in(url: object) -> frozenset[str]:
    if not isinstance(url, str):
        return frozenset()
    names = (name for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True))
    return frozenset(names) & _OF_STORE


def _store_settings(config: Config) -> StoreSettings:
    given = {
        setting.name: getattr(config, setting.name)
        for setting in fields(config)
        if setting.name in _OF_STORE and getattr(config, setting.name) != setting.default
    }
    settings = parse_url(config.url, **given)
    if not (settings.is_server or settings.in_memory):
        # A relative path means the directory of now, whatever the process changes to later.
        settings = replace(settings, address=str(Path(settings.address).absolute()))
    return settings
