from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.text import clean, shorten
from tests.core.quick import quick

ANY = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@quick
@given(ANY, st.integers(1, 100))
def test_cleaned_text_can_be_stored(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert len(cleaned) <= limit
    assert "\x00" not in cleaned
    cleaned.encode()


@quick
@given(st.text(st.characters(exclude_characters="\x00", codec="utf-8"), max_size=50))
def test_clean_leaves_good_text_alone(text: str) -> None:
    assert clean(text, 50) == text


def test_both_ends_of_a_long_text_are_kept() -> None:
    short = shorten("head" + "x" * 10_000 + "tail", 200)
    assert len(short) == 200
    assert short.startswith("head")
    assert short.endswith("tail")
    assert "shortened from 10,008 characters" in short
