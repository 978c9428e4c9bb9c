"""What every test shares: the PostgreSQL server, a clean environment, and no silent skips."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer


def pytest_configure() -> None:
    # What the developer's shell says about Holdfast must not steer a test.
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        if not name.startswith("HOLDFAST_TEST_"):
            del os.environ[name]
    # Nor what `nohup`, or a shell's background job, says about signals: a handler of ours ignores
    # them as well, but is not inherited by the workers that tests start.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is mostly of one engine is left to the long run on the other."""
    for item in items:
        mostly, given = item.get_closest_marker("mostly"), getattr(item, "callspec", None)
        if mostly is None or given is None:
            continue
        if given.params.get("engine", mostly.args[0]) != mostly.args[0]:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that would skip fails: what did not run is not known to work."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} skipped itself ({report.longrepr}); tests may not skip"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} skipped itself ({report.longrepr}); no test may"
    return report


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures-to", help="write the failing tests into this file, one a line")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """The controller alone knows of all failures; `tools/run_tests.py` reads what it writes."""
    file = session.config.getoption("--failures-to")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if file is None or hasattr(session.config, "workerinput") or reporter is None:
        return
    ended_badly = [*reporter.stats.get("failed", []), *reporter.stats.get("error", [])]
    Path(file).write_text("\n".join(dict.fromkeys(report.nodeid for report in ended_badly)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Seconds per directory of tests, so that the one that grows is seen."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration
    terminalreporter.section("seconds per directory")
    for directory, spent in sorted(seconds.items(), key=lambda pair: -pair[1]):
        terminalreporter.write_line(f"{spent:8.1f}  {directory}")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server for the whole session; a test that harms it makes its own instead."""
    with PostgresServer(fsync=False) as server:
        yield server


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[Callable[[], str]]:
    """Call it for the URL of one more empty database, dropped after the test."""
    made: list[str] = []

    def make() -> str:
        made.append(postgres_server.create_database())
        return made[-1]

    yield make
    for url in made:
        postgres_server.drop_database(url)


@pytest.fixture
def postgres_url(postgres_database: Callable[[], str]) -> str:
    """The URL of an empty database of this test's own."""
    return postgres_database()
