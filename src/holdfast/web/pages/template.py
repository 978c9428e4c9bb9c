"""From a template and what it needs to an answer, whole or for a page that is already open.

Owns the template engine, the words that every template may use, and ETags. A page that is open
asks for itself again with `X-Holdfast-Live`, and is given its navigation and its main part, or 304
if nothing in them changed but ages, which the page counts on by itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast import __version__
from holdfast.core.status import TaskStatus
from holdfast.web.access import Role
from holdfast.web.context import Context, prefix_of
from holdfast.web.pages import words
from holdfast.web.pages.chart_look import table_of
from holdfast.web.pages.foreign_text import shorten_end, shown

__all__ = ["LIVE", "THEMES", "THEME_COOKIE", "render", "theme_of"]

LIVE: Final = "x-holdfast-live"
THEME_COOKIE: Final = "holdfast_theme"
THEMES: Final = ("light", "dark", "auto")
_AGES: Final = re.compile(r"<time[^>]*>|(?<=>)[^<]*(?=</time>)")
_CODE: Final = re.compile(r"`([^`\n]{1,200})`")
_MOMENT: Final = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?\+00:00")
_LOUD: Final = frozenset({TaskStatus.FAILED, TaskStatus.STALLED, TaskStatus.DROPPED})


def render(
    context: Context,
    name: str,
    /,
    *,
    now: datetime,
    here: str,
    title: str,
    status: int = 200,
    navigation: object = None,
    **values: Any,
) -> Response:
    """The page made of this template; `here` is its place in the navigation."""
    is_live = LIVE in context.request.headers
    text = (
        _engine()
        .get_template(name)
        .render(
            _words(context, now)
            | {
                "layout": "live.html" if is_live else "layout.html",
                "here": here,
                "title": title,
                "navigation": navigation,
                **values,
            }
        )
    )
    tag = f'"{hashlib.sha256(_AGES.sub("", text).encode()).hexdigest()[:32]}"'
    headers = {"etag": tag, "vary": f"Cookie, {LIVE}"}
    if status == 200 and context.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(text, status_code=status, headers=headers)


def alone(
    request: Request, name: str, /, *, title: str, status: int = 200, **values: Any
) -> Response:
    """A page without navigation, which needs nobody to be let in."""
    text = (
        _engine()
        .get_template(name)
        .render(title=title, theme=theme_of(request.cookies), prefix=prefix_of(request), **values)
    )
    return HTMLResponse(text, status_code=status)


def theme_of(cookies: Mapping[str, str]) -> str:
    """What the visitor has chosen."""
    chosen = cookies.get(THEME_COOKIE, "auto")
    return chosen if chosen in THEMES else "auto"


def _words(context: Context, now: datetime) -> dict[str, Any]:
    return {
        "url": context.url,
        "prefix": context.prefix,
        "visitor": context.visitor,
        "may_operate": context.visitor.may(Role.OPERATE),
        "may_admin": context.visitor.may(Role.ADMIN),
        "may_see": context.visitor.payloads,
        "theme": theme_of(context.request.cookies),
        "now": now,
        "version": __version__,
    }


@lru_cache(maxsize=1)
def _engine() -> Environment:
    engine = Environment(
        loader=PackageLoader("holdfast.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_finalize,
    )
    engine.globals.update(
        TaskStatus=TaskStatus,
        age=words.age,
        until=words.until,
        exact=words.exact,
        is_loud=_LOUD.__contains__,
        table_of=table_of,
    )
    engine.filters.update(
        capped=words.capped,
        compact=words.compact,
        count_of=words.count_of,
        cut=shorten_end,
        duration=words.duration,
        memory=words.memory,
        number=words.number,
        percent=words.percent,
        prose=_prose,
        visible=shown,
    )
    return engine


def _prose(text: str) -> Markup:
    """A sentence of ours: what stands in backticks as code, moments as pages say them."""
    safe = _MOMENT.sub(r"\1 \2 UTC", str(escape(shown(text))))
    return Markup(_CODE.sub(r"<code>\1</code>", safe))


def _finalize(value: Any) -> Any:
    """What every expression of a template goes through: foreign text is made harmless."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return shown(value)
    return value
