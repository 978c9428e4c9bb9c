"""Where the worker's own port listens."""

from __future__ import annotations

import pytest

from holdfast.core.errors import ConfigError
from holdfast.runtime.http_address import HttpAddress, as_address, parse_http
from holdfast.runtime.options import WorkerOptions


@pytest.mark.parametrize(
    ("text", "host", "port", "is_loopback"),
    [
        ("127.0.0.1:9000", "127.0.0.1", 9000, True),
        ("9000", "127.0.0.1", 9000, True),
        (":9000", "127.0.0.1", 9000, True),
        ("localhost:0", "localhost", 0, True),
        ("[::1]:9000", "::1", 9000, True),
        (" 0.0.0.0:80 ", "0.0.0.0", 80, False),
        ("[::]:80", "::", 80, False),
        ("worker.example.org:65535", "worker.example.org", 65535, False),
    ],
)
def test_addresses(text: str, host: str, port: int, is_loopback: bool) -> None:
    found = parse_http(text)
    assert (found.host, found.port, found.is_loopback) == (host, port, is_loopback)
    assert parse_http(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "127.0.0.1",
        "1.2.3.4:",
        "::1:80",
        "a b:80",
        "h:65536",
        "h:-1",
        "http://h:1",
        "h:٣",
        "\0:1",
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT") as raised:
        as_address(text)
    assert raised.value.option == "http"


def test_in_options() -> None:
    assert WorkerOptions().http is None
    assert WorkerOptions.load({"http": "[::1]:1"}, {}, {}).http == HttpAddress("::1", 1)
    with pytest.raises(ConfigError, match="http=9000 is not usable"):
        WorkerOptions.load({"http": 9000}, {}, {})
    with pytest.raises(ConfigError, match="HOLDFAST_HTTP is 'x'; it must be HOST:PORT"):
        WorkerOptions.load({}, {}, {"HOLDFAST_HTTP": "x"})
