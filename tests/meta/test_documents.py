"""Every Python example in the documents runs.

The blocks of one document run in order as one module, in an empty directory, with SQLite as
the store. Each block stands at the line it has in the document, so a traceback points there.
A block that opens with ```python title="tasks.py" is saved under that name and imported at
its place, for examples of more than one file. `print(…)  # text` says what is printed, and may
go on with a colon or a comma and an explanation; "…" is anything.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from holdfast.cli.main import main
from tests.meta.tree import ROOT, files, shown

FENCE = re.compile(r"^(?P<indent> *)```python(?P<info>[^\n]*)\n(?P<code>.*?)^ *```$", re.S | re.M)
TITLE = re.compile(r'title="(\w+)\.py"')


@dataclass(frozen=True, slots=True)
class Example:
    """One fenced block."""

    line: int
    code: str
    module: str | None


def examples(text: str) -> list[Example]:
    found = []
    for block in FENCE.finditer(text):
        indent = len(block["indent"])
        code = "".join(line[indent:] or "\n" for line in block["code"].splitlines(keepends=True))
        title = TITLE.search(block["info"])
        line = text.count("\n", 0, block.start("code"))
        found.append(Example(line, code, title[1] if title else None))
    return found


def run(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run all examples of a document in `folder`."""
    lines: list[str] = []
    for example in examples(text):
        code = example.code
        if example.module:
            (folder / f"{example.module}.py").write_text("\n" * example.line + code)
            code = f"import {example.module}\n"
        lines += [""] * (example.line - len(lines))
        lines += code.splitlines()
    (folder / "document.py").write_text("\n".join(lines) + "\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", "import document"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


README = ROOT / "README.md"
"""Its examples need a worker and a shell: `tests/e2e/test_readme.py` follows it line by line."""
DOCUMENTS = [
    path
    for path in files()
    if path.suffix == ".md" and path != README and examples(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=shown)
def test_the_examples_run(path: Path, tmp_path: Path) -> None:
    answer = run(path.read_text(encoding="utf-8"), tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    missing = missed(path.read_text(encoding="utf-8"), answer.stdout)
    assert not missing, f"these are not printed: {missing}; but:\n{answer.stdout}"


def missed(text: str, printed: str) -> list[str]:
    """What examples say that they print, and do not."""
    lines = printed.splitlines()
    return [
        said
        for example in examples(text)
        for said in PROMISE.findall(example.code)
        if not any(re.fullmatch(pattern, line) for pattern in _patterns(said) for line in lines)
    ]


def _patterns(said: str) -> list[str]:
    ends = [mark.start() for mark in re.finditer(r"[:,] ", said)]
    return [".+".join(map(re.escape, said[:end].split("…"))) for end in (*ends, len(said))]


PROMISE = re.compile(r"^ *print\(.*\)  # (.+)$", re.M)


def test_what_is_not_printed_is_seen() -> None:
    text = "```python\nprint(1)  # 1: one\nprint(2)  # 3\nprint(4)  # 4, or …\n```\n"
    assert missed(text, "1\n2\n4\n") == ["3"]


CONSOLE = re.compile(r"^ *```(?:console|sh|bash|shell)\n(.*?)^ *```$", re.S | re.M)
COMMAND = re.compile(r"^ *(?:\$ )?(?:\w+=\$\()?(holdfast [^)|>\n]*)", re.M)


@pytest.mark.parametrize("path", [path for path in files() if path.suffix == ".md"], ids=shown)
def test_commands_exist_with_their_options(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for block in CONSOLE.findall(text):
        for typed in COMMAND.findall(block.replace("\\\n", " ")):
            words = shlex.split(typed, comments=True)[1:]
            command: click.Command = main
            context = click.Context(command)
            while isinstance(command, click.Group) and words and not words[0].startswith("-"):
                name, found, words = command.resolve_command(context, words)
                assert found is not None, typed
                command, context = found, click.Context(found, context, info_name=name)
            try:
                given, _, _ = command.make_parser(context).parse_args(words)
            except click.UsageError as problem:
                pytest.fail(f"{typed}: {problem.format_message()}")
            module = str(given.get("app") or "").partition(":")[0]
            titles = {example.module for example in examples(text)} - {None}
            assert not module or not titles or module in titles, f"{typed}: there is no {module}.py"


def test_a_broken_example_is_seen_at_its_line(tmp_path: Path) -> None:
    text = "one\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n"
    answer = run(text, tmp_path)
    assert answer.returncode == 1
    assert 'document.py", line 8' in answer.stderr


def test_a_titled_example_is_a_module_of_its_own(tmp_path: Path) -> None:
    text = (
        '```python title="tasks.py"\ndef f():\n    return __name__\n```\n'
        '- in a list:\n  ```python\n  import tasks\n  assert tasks.f() == "tasks"\n  ```\n'
    )
    assert len(examples(text)) == 2
    assert run(text, tmp_path).returncode == 0


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    pages = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert re.findall(r"\((\d{4}-[\w-]+\.md)\)", index) == pages


def test_links_between_documents_lead_somewhere() -> None:
    for path in files():
        if path.suffix == ".md":
            for target in re.findall(r"\]\((?!\w+:|#)([^)#]+)", path.read_text(encoding="utf-8")):
                assert (path.parent / target).exists(), f"{shown(path)} links to {target}"


def linked(page: Path) -> set[Path]:
    """The files that a page links to."""
    targets = re.findall(r"\]\((?!\w+:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    return {(page.parent / target).resolve() for target in targets}


def test_every_page_is_found_from_the_readme_and_the_index() -> None:
    docs = ROOT / "docs"
    pages = {path for path in files() if path.suffix == ".md" and docs in path.parents}
    for folder in ("howto", "operations", "reference"):
        missing = {p for p in pages if p.parent == docs / folder} - linked(README)
        assert not missing, f"README.md has no line for {sorted(map(shown, missing))}"
    index = docs / "README.md"
    reasons = {path for path in pages if path.parent == docs / "decisions"}
    missing = pages - reasons - {index} - linked(index)
    assert not missing, f"docs/README.md has no line for {sorted(map(shown, missing))}"
    assert docs / "decisions" / "README.md" in linked(index)
    assert index in linked(README)


def test_examples_import_public_names_only() -> None:
    for path in files():
        if path.suffix == ".md" and path.parent.name in ("howto", "operations", "reference"):
            for example in examples(path.read_text(encoding="utf-8")):
                found = re.findall(r"^\s*(?:from|import) (holdfast\.[\w.]+)", example.code, re.M)
                private = [name for name in found if not name.startswith(PUBLIC_MODULES)]
                assert not private, f"{shown(path)} teaches imports from {private}"


PUBLIC_MODULES = ("holdfast.contrib", "holdfast.testing", "holdfast.web")
