"""Run every check and test, and close with a table of times.

    python tools/run_tests.py                what `make test` and CI run
    python tools/run_tests.py --full         and the tests marked slow
    python tools/run_tests.py --check-only   only the checks that run no test

A failing part does not stop the others; any failure makes the exit status 1. Parts are
plain commands, printed with what they say, so that each can be repeated by hand. Checks run
two at a time, tests after them and one part after the other.

A part that takes far too long is ended, with everything it started. Up to ten failing tests are
tried once more, by themselves: a machine that stood still for seconds is no defect. What passes
then is named UNSTEADY at the end, to be looked into; what fails again has failed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
BUDGET_S = 8 * 60
# A part of `make test` takes six minutes; one that takes seven times as long will never end.
LIMIT_S = 40 * 60
# A test that hangs where its own timeout cannot reach it (120 s, by a signal to the main thread):
# its process says where all its threads are.
HUNG_TEST_S = 300
FULL_LIMIT_S = 4 * 60 * 60
MOST_TRIED_AGAIN = 10
SOME_TESTS_FAILED = 1  # pytest's exit status

CHECKS = {
    "format": ["ruff", "format", "--check", "--quiet", "."],
    "lint": ["ruff", "check", "--quiet", "."],
    "mypy": ["mypy", "--no-error-summary"],
    "pyright": ["pyright", "--warnings"],
    "layers": ["lint-imports", "--no-cache", "--no-logo"],
    "documents": ["python", "tools/gen_docs.py", "--check"],
}


def test_parts(full: bool) -> dict[str, list[str]]:
    """The pytest runs: most tests share the cores, those that measure run by themselves."""
    chosen = "" if full else " and not slow"
    # Three on two cores: most of the time goes by in waiting for processes and leases. Those that
    # wait longest come first, or one would still be at them when the others have ended.
    shared = ["-n", "3", "--dist", "loadscope", "--no-loadscope-reorder"]
    longest_first = ["tests/faults", "tests/e2e", "tests"]
    hung = ["-o", f"faulthandler_timeout={HUNG_TEST_S}"]
    usual = ["pytest", "--durations=20", *([] if full else hung)]
    return {
        "tests": [*usual, *shared, "-m", f"not alone{chosen}", *longest_first],
        "tests alone": [*usual, "-m", f"alone{chosen}"],
    }


@dataclass(frozen=True, slots=True)
class Finished:
    """One part that ran."""

    name: str
    seconds: float
    status: int
    unsteady: tuple[str, ...] = ()
    """Tests that failed and passed when tried once more."""


def run(name: str, command: list[str], *, limit: float, at_once: bool = True) -> Finished:
    """Run a part; what it says is shown at once, or when it has ended."""
    heading = f"\n=== {name}: {shlex.join(command)}"
    if at_once:
        print(heading, flush=True)
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
        # A newer pyright must not turn a green commit red.
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
        # Both test processes must collect the same tests in the same order.
        "PYTHONHASHSEED": "0",
    }
    began = time.monotonic()
    kept = None if at_once else subprocess.PIPE
    part = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=kept,
        stderr=None if at_once else subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = part.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        said = f"{name} was ended after {limit:.0f} s: it did not end by itself\n"
        os.killpg(part.pid, signal.SIGKILL)
        part.wait()
        if at_once:
            print(f"\n{said}", end="", flush=True)
    except BaseException:
        os.killpg(part.pid, signal.SIGTERM)
        part.wait()
        raise
    if not at_once:
        print(f"{heading}\n{said}", end="", flush=True)
    return Finished(name, time.monotonic() - began, part.returncode)


def check(limit: float) -> list[Finished]:
    """Run all checks; the two longest take one core each."""
    with ThreadPoolExecutor(2) as pool:
        longest_first = sorted(CHECKS, key=lambda name: name not in ("pyright", "mypy"))
        running = {
            name: pool.submit(run, name, CHECKS[name], limit=limit, at_once=False)
            for name in longest_first
        }
    return [running[name].result() for name in CHECKS]


def run_tests(name: str, command: list[str], *, limit: float) -> Finished:
    """Run a part that is pytest; a few failing tests are tried once more, by themselves."""
    with tempfile.TemporaryDirectory(prefix="holdfast-tests-") as directory:
        failures = Path(directory, "failures")
        first = run(name, [*command, f"--failures-to={failures}"], limit=limit)
        if first.status != SOME_TESTS_FAILED:
            return first
        failed = failures.read_text().splitlines() if failures.exists() else []
    if not 0 < len(failed) <= MOST_TRIED_AGAIN:
        return first
    again = run(f"{name}, once more", ["pytest", "-m", "", *failed], limit=limit)
    seconds = first.seconds + again.seconds
    if again.status:
        return replace(first, seconds=seconds)
    return Finished(name, seconds, 0, tuple(failed))


def table(finished: list[Finished], total: float) -> str:
    lines = [f"{'part':<14}{'seconds':>9}  result"]
    for part in finished:
        result = "ok" if part.status == 0 else f"FAILED (exit status {part.status})"
        lines.append(f"{part.name:<14}{part.seconds:>9.1f}  {result}")
    lines.append(f"{'total':<14}{total:>9.1f}")
    lines += [
        f"UNSTEADY: {test} failed, and passed by itself"
        for part in finished
        for test in part.unsteady
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--full", action="store_true", help="run the slow tests too")
    parser.add_argument("--check-only", action="store_true", help="run no tests")
    options = parser.parse_args()

    limit = FULL_LIMIT_S if options.full else LIMIT_S
    began = time.monotonic()
    finished = check(limit)
    if not options.check_only:
        finished += [
            run_tests(name, command, limit=limit)
            for name, command in test_parts(options.full).items()
        ]

    total = time.monotonic() - began
    print(f"\n{table(finished, total)}")
    if not options.full and total > BUDGET_S:
        print(f"note: {total:.0f} s is over the {BUDGET_S} s that `make test` may take")
    return int(any(part.status for part in finished))


if __name__ == "__main__":
    sys.exit(main())
