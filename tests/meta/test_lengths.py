"""Files stay small: a file with one noun rarely needs 300 lines, and none may reach 500."""

from __future__ import annotations

from tests.meta.tree import files, python_files, shown

AIM = 300
LIMIT = 500
FOLDERS = ("src", "tests", "tools", "bench")
BANNED = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}


def test_no_file_reaches_the_limit() -> None:
    lengths = {
        shown(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in files()
        if path.suffix in {".py", ".sql"} and shown(path).startswith(FOLDERS)
    }
    for name, lines in sorted(lengths.items(), key=lambda pair: -pair[1]):
        if lines > AIM:
            print(f"{lines:5} {name}")
    assert {name: lines for name, lines in lengths.items() if lines >= LIMIT} == {}


def test_modules_are_named_for_what_they_are() -> None:
    assert [shown(path) for path in python_files(*FOLDERS) if path.stem in BANNED] == []
