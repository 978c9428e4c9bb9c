"""`holdfast web`: serve the dashboard and the HTTP API.

Owns the address, who may enter, and the server's life. It listens on this machine only, where
whoever has a login may enter, unless it is told of tokens; without them any other address is
refused. What goes wrong while it serves is logged like everything else of Holdfast.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast.cli.logs import FORMATS, LEVELS, configure
from holdfast.cli.place import Place, PlaceOptions, place_options
from holdfast.cli.session import Misused, NotDone, session
from holdfast.core.errors import ConfigError

if TYPE_CHECKING:
    from holdfast.app import Holdfast
    from holdfast.web.tokens import Tokens

TOKEN: Final = "HOLDFAST_WEB_TOKEN"
_NEEDED: Final = ("starlette", "jinja2", "uvicorn")
_GRACE_S: Final = 3


@click.command("web")
@place_options
@click.option("--host", default="127.0.0.1", show_default=True, envvar="HOLDFAST_WEB_HOST")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8765,
    show_default=True,
    envvar="HOLDFAST_WEB_PORT",
    help="0 takes a free one.",
)
@click.option(
    "--tokens",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="HOLDFAST_WEB_TOKENS",
    help="A file with a line for each token: name, roles, hash.",
)
@click.option(
    "--new-token", metavar="NAME", help="Print a new token, and its line for the file; then end."
)
@click.option(
    "--roles",
    default="read",
    show_default=True,
    help="Of the new token: read, operate or admin; with payloads: operate,payloads.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Answer to this name in Host headers; several times for several.",
)
@click.option("--root-path", default="", metavar="PATH", help="Where a proxy mounts it: /tasks.")
@click.option(
    "--proxy",
    metavar="IP,…",
    help="Believe these what they say of clients (X-Forwarded-For, X-Forwarded-Proto).",
)
@click.option(
    "--hide",
    multiple=True,
    metavar="KEY",
    help="Show nobody the values of this key in arguments and results; several times for several.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="info",
    show_default=True,
    envvar="HOLDFAST_LOG_LEVEL",
    help="Leave out what is less.",
)
@click.option(
    "--log-format",
    type=click.Choice(FORMATS, case_sensitive=False),
    default="text",
    show_default=True,
    envvar="HOLDFAST_LOG_FORMAT",
    help="Lines of text, or one JSON object a line.",
)
def web(place: PlaceOptions, new_token: str | None, roles: str, **given: Any) -> None:
    """Serve the dashboard and the HTTP API.

    By itself it listens on this machine only, and lets in who is there. To listen elsewhere, or to
    tell people apart, give tokens: one for everything in HOLDFAST_WEB_TOKEN, or many in a file.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise Misused(f"this needs {', '.join(missing)}: pip install 'holdfast[web]'")
    if new_token is not None:
        _print_token(new_token, roles)
        return
    with session(place, as_json=False, creates=False) as opened:
        tokens = _tokens(given["tokens"])
        if tokens is None and not _is_loopback(given["host"]):
            raise Misused(
                f"{given['host']} can be reached from other machines, and nobody would be asked "
                f"who they are: set {TOKEN}, or give --tokens FILE (see --new-token)"
            )
        # What is wrong with the database is said now, not on a page.
        opened.control.now()
        found = opened.place
    configure(level=given["log_level"], form=given["log_format"])
    _serve(found, place, tokens, given)


def _serve(found: Place, place: PlaceOptions, tokens: Tokens | None, given: dict[str, Any]) -> None:
    import uvicorn

    from holdfast.cli.web_connection import WebConnection
    from holdfast.client.acting import system_user
    from holdfast.web.access import Role, Visitor
    from holdfast.web.dashboard import Dashboard

    local = Visitor(system_user(), Role.ADMIN, payloads=True)
    app = found.app or _app(place)
    dashboard = Dashboard(
        app,
        access=None if tokens is not None else lambda _: local,
        tokens=tokens,
        hosts=_hosts(given["host"], given["hosts"]),
        hide=given["hide"],
    )
    _log_of_the_server()
    listener = _listen(given["host"], given["port"])
    server = uvicorn.Server(
        uvicorn.Config(
            dashboard,
            http=WebConnection,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            root_path=given["root_path"].rstrip("/"),
            proxy_headers=given["proxy"] is not None,
            forwarded_allow_ips=given["proxy"],
            timeout_graceful_shutdown=_GRACE_S,
        )
    )

    def stop(*_: object) -> None:
        server.should_exit = True

    # The server raises a signal again when it has obeyed it, and it comes here.
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        log = logging.getLogger("holdfast.web")
        log.info("at %s, for %s", _url(listener, given["host"]), found.described)
        server.run(sockets=[listener])
    finally:
        listener.close()
        app.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _app(place: PlaceOptions) -> Holdfast:
    """An app that knows no tasks: the database alone was named."""
    from holdfast.app import Holdfast

    if place.schema is None:
        return Holdfast(place.url, auto_migrate=False)
    return Holdfast(place.url, schema=place.schema, auto_migrate=False)


def _tokens(file: Path | None) -> Tokens | None:
    from holdfast.web.tokens import Tokens

    found = None if file is None else Tokens.in_file(file)
    one = os.environ.get(TOKEN)
    if one is None:
        return found
    return Tokens.one(one) if found is None else found.both(Tokens.one(one))


def _print_token(name: str, roles: str) -> None:
    from holdfast.web.tokens import line_of, new_token

    token = new_token()
    try:
        line = line_of(name, roles, token)
    except ConfigError as error:
        raise Misused(str(error)) from None
    click.echo("The token, which is not kept anywhere and not shown again:", err=True)
    click.echo(token)
    click.echo("Its line for the file of --tokens:", err=True)
    click.echo(line)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _hosts(host: str, named: tuple[str, ...]) -> frozenset[str] | None:
    """The names in Host headers to answer to; None: any."""
    if not _is_loopback(host):
        # A page of another site that leads its own name here has no token of ours.
        return frozenset(named) or None
    own = f"[{host}]" if ":" in host else host
    return frozenset({"localhost", "127.0.0.1", "[::1]", own, *named})


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise NotDone(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
    listener.set_inheritable(False)
    return listener


def _url(listener: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


def _log_of_the_server() -> None:
    ours, theirs = logging.getLogger("holdfast"), logging.getLogger("uvicorn")
    theirs.handlers[:] = ours.handlers
    theirs.propagate = False
    theirs.setLevel(logging.WARNING)
