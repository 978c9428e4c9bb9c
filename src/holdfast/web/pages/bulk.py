"""A verb for many tasks: those that were selected, or all that fit a filter.

First comes a page that counts them and says what will happen; only its button acts. Then tasks are
taken in batches, one request each: the page sends itself again until all are done, shows how far it
is, and can be stopped at any moment. Nothing is kept on the server between requests, so any number
of processes may serve them, and what is done is done. Tasks that arrive in between are newer than
where the batches go on, and are left alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from uuid import UUID

from starlette.responses import Response

from holdfast.core.errors import ConfigError
from holdfast.core.status import TaskStatus
from holdfast.web.bulk_verb import BulkVerb, do_to_ids
from holdfast.web.context import Context
from holdfast.web.pages.navigation import navigation
from holdfast.web.pages.task_filter import TaskChoice
from holdfast.web.pages.task_verbs import BULK_VERBS, OperatorVerb
from holdfast.web.pages.template import render
from holdfast.web.problem import Refusal
from holdfast.web.route import WebRoute

__all__ = ["ROUTES"]

BATCH: Final = 500
RATES: Final = (0, 5, 50, 200)
"""Tasks a second; 0: as fast as it goes."""
PAUSE_S: Final = 2.0
"""Between two batches, where there is a rate."""
_MOST_SELECTED: Final = 500
_MOST_NUMBER: Final = 10**15


@dataclass(frozen=True, slots=True)
class Batch:
    """How far an action is."""

    done: int
    refused: int
    total: int
    at_least: bool
    rate: int
    started_at: float
    before: UUID | None = None
    """Where the next batch begins; None: there is none."""

    @property
    def fraction(self) -> float:
        """Of what was counted."""
        seen = self.done + self.refused
        return min(1.0, seen / self.total) if self.total else 1.0


async def ask_first(verb: OperatorVerb, context: Context) -> Response:
    """How many there are, and what will happen to them."""
    params = context.request.query_params
    fields = {name: params.getlist(name) for name in params}
    selected = _selected(fields)
    choice = TaskChoice.read(fields)
    now = await context.control.anow()
    tasks = context.control.tasks
    wanted = choice.only(verb.sources)
    if selected or wanted is None:
        ids, more = selected, False
    else:
        page = await tasks.aids(**wanted.filter(now))
        ids, more = list(page.ids), page.next is not None
    counts = Counter((await tasks.astatuses(*ids)).values())
    able = {status: counts[status] for status in verb.sources if counts[status]}
    return render(
        context,
        "bulk_ask.html",
        now=now,
        here="dead" if choice.dead else "tasks",
        title=verb.label,
        navigation=await navigation(context),
        verb=verb,
        able=able,
        number=sum(able.values()),
        at_least=more,
        unable=sum(counts.values()) - sum(able.values()),
        missing=len(ids) - sum(counts.values()),
        selected=selected,
        choice=choice,
        rates=RATES,
        back=context.url("/tasks", **choice.query()),
    )


async def do_batch(verb: OperatorVerb, context: Context) -> Response:
    """One batch, and how far it is."""
    fields = await context.form()
    selected = _selected(fields)
    choice = TaskChoice.read(fields)
    now = await context.control.anow()
    batch = _batch(fields)
    size = BATCH if not batch.rate else max(1, min(BATCH, round(batch.rate * PAUSE_S)))
    wanted = choice.only(verb.sources)
    if selected or wanted is None:
        ids, before = selected, None
    else:
        page = await context.control.tasks.aids(
            before=batch.before, limit=size, **wanted.filter(now)
        )
        ids, before = list(page.ids), page.next
    async with context.acting(None if selected else choice.words()):
        act = _act(context, verb, fresh="fresh" in fields)
        answer = await do_to_ids(context.control, verb.name, act, ids)
    after = Batch(
        batch.done + answer.done,
        batch.refused + answer.not_done,
        max(batch.total, batch.done + batch.refused + len(ids)),
        batch.at_least,
        batch.rate,
        batch.started_at,
        before,
    )
    return render(
        context,
        "bulk_done.html",
        now=now,
        here="dead" if choice.dead else "tasks",
        title=verb.doing,
        navigation=await navigation(context),
        verb=verb,
        choice=choice,
        batch=after,
        took=max(0.0, time.time() - after.started_at),
        reason=next(iter(answer.refused.values()), ""),
        fresh="fresh" in fields,
        pause=PAUSE_S if after.rate else 0.0,
        back=context.url("/tasks", **choice.query()),
    )


def _act(context: Context, verb: OperatorVerb, *, fresh: bool) -> BulkVerb:
    tasks = context.control.tasks

    async def cancel(ids: Sequence[UUID]) -> Mapping[UUID, bool]:
        good = (TaskStatus.CANCELLED, TaskStatus.RUNNING)
        return {id: status in good for id, status in (await tasks.acancel(*ids)).items()}

    async def resubmit(ids: Sequence[UUID]) -> Mapping[UUID, bool]:
        return await tasks.aresubmit(*ids, fresh=fresh)

    async def delete(ids: Sequence[UUID]) -> Mapping[UUID, bool]:
        return await tasks.adelete(*ids)

    return {"cancel": cancel, "resubmit": resubmit, "delete": delete}[verb.name]


def _selected(fields: Mapping[str, Sequence[str]]) -> list[UUID]:
    given = fields.get("id", ())
    if len(given) > _MOST_SELECTED:
        raise Refusal(422, "invalid", f"more than {_MOST_SELECTED} are selected: use a filter")
    try:
        return list(dict.fromkeys(UUID(text) for text in given))
    except ValueError:
        raise Refusal(422, "invalid", "id is not a UUID") from None


def _batch(fields: Mapping[str, Sequence[str]]) -> Batch:
    def number(name: str) -> int:
        text = (fields.get(name) or ["0"])[-1]
        if not (text.isascii() and text.isdigit()) or int(text[:16]) > _MOST_NUMBER:
            raise ConfigError(f"{name}={text!r:.50} is not a number", option=name)
        return int(text[:16])

    before = (fields.get("before") or [""])[-1]
    rate = number("rate")
    if rate not in RATES:
        raise ConfigError(f"rate={rate} is none of {RATES}", option="rate")
    started = number("started_ms")
    return Batch(
        done=number("done"),
        refused=number("refused"),
        total=number("total"),
        at_least="at_least" in fields,
        rate=rate,
        started_at=started / 1000 if started else time.time(),
        before=_uuid(before) if before else None,
    )


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Refusal(422, "invalid", "before is not a UUID") from None


ROUTES: Final = tuple(
    route
    for verb in BULK_VERBS
    for route in (
        WebRoute(
            f"/tasks/bulk/{verb.name}",
            ("GET",),
            partial(ask_first, verb),
            needs=verb.needs,
            name=f"bulk-{verb.name}",
            kind="page",
        ),
        WebRoute(
            f"/tasks/bulk/{verb.name}",
            ("POST",),
            partial(do_batch, verb),
            needs=verb.needs,
            name=f"bulk-{verb.name}-do",
            kind="page",
        ),
    )
)
