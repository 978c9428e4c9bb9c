"""refuse: the end of claimed tasks whose rows cannot be read.

Owns no verb of the lifecycle: such a task is started and fails at once, with the code INVALID_ROW,
in one transaction and under the token of its claim. So it leaves its queue for good, is listed
among the dead letters, and can be deleted by its key. None of its code has run.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.core.decide import Change
from holdfast.core.error_code import ErrorCode
from holdfast.core.lifecycle import Verb
from holdfast.core.payload.failure import encode_error
from holdfast.core.records import LOST, Refused
from holdfast.core.result import TaskError
from holdfast.core.status import TaskStatus
from holdfast.core.text import one_line
from holdfast.store.op import Steps, writes
from holdfast.store.verbs.claims import Begin, start
from holdfast.store.verbs.finish import RunChange, end_steps


def invalid(reason: str) -> Change:
    """What becomes of a task whose row cannot be read."""
    said = one_line(reason, 500)
    error = TaskError.ours(ErrorCode.INVALID_ROW, f"the stored row cannot be read: {said}")
    return Change(
        verb=Verb.FAIL,
        target=TaskStatus.FAILED,
        error=error,
        failed_reason=error.message,
        result=encode_error(error),
    )


@writes
def refuse(
    refused: Sequence[Refused], *, token: bytes, hostname: str, worker_id: str
) -> Steps[int]:
    """CLAIMED or RUNNING → FAILED for rows that a claim could not read; how many ended."""
    yield from start([Begin(each.key, token, 0, "") for each in refused], hostname=hostname)
    ended = yield from end_steps(
        [RunChange(each.key, token, invalid(each.reason), worker_id=worker_id) for each in refused],
        counts=True,
    )
    return sum(landing is not LOST for landing in ended.values())
