"""Nothing in the repository depends on the machine it was written on."""

from __future__ import annotations

import re

from tests.meta.tree import ROOT, files, shown

# Written in pieces, or this file would find itself.
MACHINE = re.compile(r"(?<![\w.:/])/(?:ro{2}t|wor[k]|home|User[s])/\w")
REGISTRY = re.compile(
    r"(?:file[:]//|py[p]i\.org/simple|python[h]osted\.org|registry[.]npmjs|index-ur[l]|find-link[s])"
)


def texts() -> list[tuple[str, str]]:
    found = []
    for path in files():
        try:
            found.append((shown(path), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def matches(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_path_of_one_machine() -> None:
    assert matches(MACHINE) == []


def test_no_address_of_a_registry() -> None:
    assert matches(REGISTRY) == []


def test_the_constraints_are_plain_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    names = [re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins]
    assert names == sorted(set(names))


def test_ci_runs_make_test_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().splitlines()[-1] == "exec make test"
