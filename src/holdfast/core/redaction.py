"""Hiding passwords before a text or a value is shown.

Owns the one function that every message, log line and `repr` goes through that may hold an address
or a setting, and the one for plain data: arguments, results. The first does not parse: what has to
be hidden is often what was mistyped. In doubt it hides too much, for example the host of a
URL that has an at sign in its query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from typing import Any, Final
from urllib.parse import unquote_plus

__all__ = ["HIDDEN", "SECRET_MARK", "is_secret", "key_rule", "mask", "redact", "redact_lines"]

HIDDEN: Final = "***"
SECRET_MARK: Final = "$secret"
"""The key under which a `Secret` is stored (`core/secret.py`)."""

# Everything from the colon behind the user to the last at sign: a password may hold colons,
# slashes and at signs that nobody has percent-encoded. The colon of "scheme://" is not meant.
# (One search for the colon and one for the at sign: a pattern of both looks at each part of a long
# text again for each colon.)
_WORD = re.compile(r"\S++")
_COLON = re.compile(r":(?!//)")
# libpq's "name = value", a URL's "?name=value", and a mapping's "'name': 'value'".
_PAIR = re.compile(
    r"""(?<![\w.%+-])(?P<name>[\w.%+-]++) (?P<equals>["']?\s*[=:]\s*)
    (?P<value>\*\*\*(?=[\])}]) | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | [^\s&'",;]+)""",
    re.X,
)
_PARAMETER_OF_URL = re.compile(r"(?<=[?&])(?P<name>[^=&]{0,200}+)(?P<equals>=)(?P<value>[^&]*)")
_SECRET = re.compile(
    r"(?i)pass(?:word|wd|phrase|wort)|pwd|secret|token|credential|api[_-]?key|access[_-]?key"
    r"|scram_(?:client|server)_key"
)
_URL = re.compile(r"\s*[\w.+-]+:/")
_DEEPEST: Final = 20
"""Of "a=b=c=…": what stands deeper is hidden, whatever it is."""


def redact(text: str) -> str:
    """The text without passwords: of URLs, of conninfo strings, of settings by name."""
    if _URL.match(text):
        # The text is a URL, so even a space in it may be part of a password.
        text = _PARAMETER_OF_URL.sub(_hide, text)
        text = _without_login(text)
    text = _PAIR.sub(_hide, text)
    if "@" not in text:
        return text
    return _WORD.sub(lambda found: _without_login(found[0]), text)


def redact_lines(text: str) -> str:
    """The same for a text of several lines, such as a traceback, each by itself."""
    return "\n".join(map(redact, text.split("\n")))


def is_secret(key: str) -> bool:
    """Whether a key, an argument or a setting of this name holds what must not be shown."""
    return _SECRET.search(key) is not None


def key_rule(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Which keys hold what must not be shown: those of `is_secret`, and these, such as `iban` or
    `card_*`; capitals make no difference."""
    wanted = [re.compile(translate(pattern), re.I) for pattern in patterns]
    if not wanted:
        return is_secret
    return lambda key: is_secret(key) or any(each.match(key) for each in wanted)


def mask(value: Any, hides: Callable[[str], bool] = is_secret) -> Any:
    """Plain data without the values of keys that say they are secret, however deep they stand."""
    match value:
        case dict() if SECRET_MARK in value:
            return HIDDEN
        case dict():
            return {
                key: HIDDEN if isinstance(key, str) and hides(key) else mask(inner, hides)
                for key, inner in value.items()
            }
        case list() | tuple():
            return [mask(inner, hides) for inner in value]
        case _:
            return value


def _without_login(text: str) -> str:
    """The text without what stands between the colon behind a user and the last at sign."""
    end = text.rfind("@")
    colon = _COLON.search(text, 0, max(0, end))
    return text if colon is None else f"{text[: colon.start()]}:{HIDDEN}{text[end:]}"


def _hide(found: re.Match[str], depth: int = 0) -> str:
    name, equals, value = found["name"], found["equals"], found["value"]
    if _SECRET.search(unquote_plus(name)) and not value.startswith("//"):
        return f"{name}{equals}{HIDDEN}"
    if depth == _DEEPEST:
        return f"{name}{equals}{HIDDEN}"
    # The value may itself be an address, and then in quotes.
    quote = value[:1] if value[:1] in "'\"" else ""
    inner = value[len(quote) : len(value) - len(quote)]
    shown = _PAIR.sub(lambda part: _hide(part, depth + 1), inner)
    return f"{name}{equals}{quote}{shown}{quote}"
