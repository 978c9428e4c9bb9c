"""The map of the source (`docs/internals.md`) names what is there, and every package of it."""

from __future__ import annotations

import re
from typing import Final

from tests.meta.tree import ROOT, SOURCE, files, parsed, shown

PAGE: Final = ROOT / "docs" / "internals.md"
FOLDER: Final = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]*)`")
FILE: Final = re.compile(
    r"(?<![\w/.-])((?:[a-z_0-9]+/)*[a-z_0-9]+(?:\.(?:postgres|sqlite))?\.(?:py|sql|txt))"
)
"""`store/sql/`, `core/lifecycle.py`, or the last part of such a path: `duties/claimer.py`."""


def _page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_every_path_that_is_named_exists() -> None:
    known = set()
    for path in files():
        inner = f"/{shown(path)}"
        known |= {inner, inner.removesuffix(".py")}
        known |= {f"/{shown(folder)}" for folder in path.parents if ROOT in folder.parents}
    named = {match.rstrip("/") for match in FOLDER.findall(_page()) + FILE.findall(_page())}
    assert len(named) > 50
    assert sorted(n for n in named if not any(k.endswith(f"/{n}") for k in known)) == []


def test_every_package_is_on_the_map_with_its_own_sentence() -> None:
    text = " ".join(_page().split())
    missing = []
    for init in sorted(SOURCE.rglob("__init__.py")):
        sentence = (parsed(init).body[0].value.value).partition("\n")[0]  # type: ignore[attr-defined]
        package = shown(init.parent).removeprefix("src/")
        if init.parent != SOURCE and f"| `{package}` | {sentence} |" not in text:
            missing.append(f"| `{package}` | {sentence} |")
    assert missing == []
