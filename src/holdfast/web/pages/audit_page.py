"""The record of what people did: who, when, from where, what, to how many."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from holdfast.client.audit_control import AuditFilter
from holdfast.core.errors import ConfigError
from holdfast.web.access import Role
from holdfast.web.context import Context
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.template import render
from holdfast.web.pages.value_tree import value_tree
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

_FIELDS: Final = ("by", "verb", "subject")
_LONGEST: Final = 1_000


async def show_audit(context: Context) -> Response:
    """The page."""
    params = context.request.query_params
    given = {name: params.get(name, "").strip()[:_LONGEST] for name in _FIELDS}
    chosen = {name: value for name, value in given.items() if value}
    where = AuditFilter()
    if "by" in chosen:
        where["by"] = chosen["by"]
    if "verb" in chosen:
        where["verb"] = chosen["verb"]
    if "subject" in chosen:
        where["subject"] = chosen["subject"]
    before = _before(params.get("before"))
    page = await context.control.audit.alist(before=before, **where)
    return render(
        context,
        "audit.html",
        now=await context.control.anow(),
        here="audit",
        title="Audit",
        navigation=await navigation(context),
        entries=[
            (each, None if each.detail is None else value_tree(context.payloads.value(each.detail)))
            for each in page.entries
        ],
        chosen=chosen,
        newest=context.url("/audit", **chosen) if before is not None else None,
        older=None if page.next is None else context.url("/audit", **chosen, before=page.next),
    )


def _before(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ConfigError(f"before={text!r:.50} is not the number of an entry", option="before")
    return int(text)


ROUTES: Final = (
    WebRoute("/audit", ("GET",), show_audit, needs=Role.ADMIN, name="audit", kind="page"),
)
