"""What a visitor sees of a task's messages."""

from __future__ import annotations

from holdfast.web.payload_view import PayloadView


def test_no_line_is_too_long_to_be_without_passwords() -> None:
    said = PayloadView.said(f"refused\nINSERT {'x, ' * 5_000} at postgresql://u:hunter2@host/x")
    assert "hunter2" not in said
    assert said.startswith("refused\nINSERT x, x, ")
    # So many levels are more than Python's stack has.
    assert PayloadView.said("a=" * 4_000 + "b").startswith("a=a=")
