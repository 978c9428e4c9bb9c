"""What the API says: values and problems as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from starlette.responses import Response

from holdfast.web.problem import Problem

__all__ = ["json_answer", "problem_answer"]

_JSON: Final = "application/json"
_PROBLEM: Final = "application/problem+json"
_encoder: Final = msgspec.json.Encoder()


def json_answer(value: Any, status: int = 200) -> Response:
    """A value, of types that msgspec knows."""
    return Response(_encoded(value), status_code=status, media_type=_JSON)


def _encoded(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError):
        # Rows that were written by hand hold halves of surrogate pairs, and huge numbers.
        return json.dumps(msgspec.to_builtins(value), ensure_ascii=True).encode()


def problem_answer(problem: Problem) -> Response:
    """A refusal, as RFC 9457 has it."""
    document = {
        "type": f"urn:holdfast:{problem.kind}",
        "kind": problem.kind,
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
        **problem.more,
    }
    return Response(
        _encoded(document),
        status_code=problem.status,
        media_type=_PROBLEM,
        headers=problem.headers,
    )
