"""Write the documents that are generated from the code, or check that they are current.

python tools/gen_docs.py            write them
python tools/gen_docs.py --check    say which differ, and fail if any does
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

# As a script, this file is found by its own directory only.
sys.path.insert(0, str(ROOT))
from tools import (  # noqa: E402
    command_line_page,
    figures_chart,
    figures_page,
    http_api_page,
    lifecycle_page,
    reference_pages,
)

GENERATED: dict[str, Callable[[], str]] = {
    "reference/errors.md": reference_pages.error_page,
    "reference/settings.md": reference_pages.settings,
    "reference/task-options.md": reference_pages.task_options,
    "reference/cli.md": command_line_page.as_markdown,
    "reference/http-api.md": http_api_page.as_markdown,
    "reference/lifecycle.md": lifecycle_page.as_markdown,
    "figures.md": figures_page.as_markdown,
    "figures.svg": figures_chart.as_svg,
}


def stale(docs: Path = DOCS) -> list[str]:
    """Documents that are missing or differ from what the code would write."""
    return [
        name
        for name, make in GENERATED.items()
        if not (docs / name).exists() or (docs / name).read_text(encoding="utf-8") != make()
    ]


def write(docs: Path = DOCS) -> list[str]:
    """Write what is stale, and say what was written."""
    names = stale(docs)
    for name in names:
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(GENERATED[name](), encoding="utf-8")
    return names


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        for name in stale():
            print(f"docs/{name} is not what the code says: run `make docs`", file=sys.stderr)
        return 1 if stale() else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for name in write():
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
