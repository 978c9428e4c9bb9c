"""The template: importing, forking, reaping, and dying with the supervisor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from holdfast.core.outcome import Returned
from tests.support.deadline import until
from tests.support.nursery import ROOT, Kid, Nursery, job

THREADED = "tests.runtime.apps.threaded:app"
PLAIN = "tests.runtime.apps.plain:app"


# The manifest.


def test_the_manifest_tells_what_the_application_is(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from holdfast import Holdfast, Retry\n"
        "app = Holdfast('sqlite:///shop.db', default_timeout=60, max_payload=5000)\n"
        "@app.task('resize', version=2, queue='images', max_concurrent=3, retry=Retry(2))\n"
        "def resize(path: str) -> str: ...\n"
        "@app.task('fetch')\n"
        "async def fetch() -> str: ...\n"
        "@app.task('talk', executor='thread')\n"
        "def talk() -> str: ...\n"
        "@resize.hooks.on_failure\n"
        "def page(event): ...\n"
        "@app.hooks.on_retry\n"
        "def again(event): ...\n"
        "@app.hooks.child_started\n"
        "def hello(event): ...\n"
    )
    with Nursery("shop:app", directory=tmp_path) as nursery:
        manifest = nursery.manifest()
    assert manifest.url == "sqlite:///shop.db"
    assert manifest.app_name == "shop:app"
    assert manifest.threads == 1
    assert manifest.hooks == ["child_started"]
    assert manifest.settings["max_payload"] == 5000
    assert manifest.settings["store"]["address"] == str(tmp_path / "shop.db")
    tasks = {task.name: task for task in manifest.tasks}
    assert {name: task.kind for name, task in tasks.items()} == {
        "resize": "process",
        "fetch": "async",
        "talk": "thread",
    }
    resize = tasks["resize"]
    assert (resize.version, resize.queue, resize.max_concurrent) == (2, "images", 3)
    assert json.loads(resize.task_options or "") == {"retry": {"max_retries": 2}, "timeout": 60.0}
    assert resize.hooks == ["on_failure", "on_retry"]
    assert tasks["fetch"].hooks == ["on_retry"]


# Applications that cannot be imported.

BROKEN = {
    "raises": "def deep():\n    return 1 / 0\n\nx = deep()\n",
    "imports": "import nowhere.at_all\n",
    "syntax": "def broken(:\n",
    "exits": "import sys\nsys.exit('not today')\n",
    "empty": "x = 1\n",
    "other": "app = 'a text'\n",
    "named": "from holdfast import Holdfast\nqueue = Holdfast('sqlite:///:memory:')\n",
    "config": "from holdfast import Holdfast\napp = Holdfast('mysql://x')\n",
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("broken")
    for name, text in BROKEN.items():
        (folder / f"broken_{name}.py").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("broken_raises:app", ["importing broken_raises failed", "ZeroDivisionError", "1 / 0"]),
        ("broken_imports:app", ["importing broken_imports failed", "No module named 'nowhere'"]),
        ("broken_syntax:app", ["SyntaxError", "def broken(:"]),
        ("broken_exits:app", ["importing broken_exits failed", "not today"]),
        ("broken_config:app", ["ConfigError", "mysql"]),
        ("nothing_here:app", ["there is no module 'nothing_here'", "was looked for in"]),
        ("broken_empty:app", ["module 'broken_empty' has no 'app'"]),
        ("broken_named:app", ["has no 'app'; it has queue"]),
        ("broken_other:app", ["is not an application but a str"]),
        ("broken_empty", ["names no application", "MODULE:APP"]),
        ("broken_empty.py:app", ["is a file", "broken_empty:app"]),
    ],
)
def test_what_cannot_be_imported_is_explained(broken: Path, target: str, said: list[str]) -> None:
    with Nursery(target, directory=broken) as nursery:
        message = nursery.broken()
        assert nursery.template.wait(5) == 2
    for words in said:
        assert words in message.text
    assert "holdfast/runtime" not in message.text
    assert "importlib" not in message.text


# Births and deaths.


def test_children_are_forked_while_there_is_one_thread(plain: Nursery) -> None:
    kid = plain.fork()
    assert os.getpgid(kid.pid) == kid.pid
    assert _parent(kid.pid) == plain.template.pid
    assert kid.do("add", 1).result == "3"


@pytest.fixture(scope="module")
def threaded() -> Iterator[Nursery]:
    with Nursery(THREADED) as nursery:
        assert nursery.manifest().threads == 2
        yield nursery


def test_children_are_spawned_when_there_are_more(threaded: Nursery) -> None:
    kid = threaded.fork()
    imported_by, pid = json.loads(kid.do("where").result)
    assert imported_by == pid == kid.pid, "the application was imported again"
    assert os.getpgid(kid.pid) == kid.pid
    order = job("say", "hello")
    kid.do_all([order])
    assert kid.output(order) == b"hello\n"
    os.kill(kid.pid, signal.SIGKILL)
    assert kid.died().exit_signal == signal.SIGKILL


def test_a_death_is_told_within_a_second(plain: Nursery) -> None:
    kids = [plain.fork() for _ in range(3)]
    for kid in kids:
        kid.begin("sleep", 60)
    began = monotonic()
    os.kill(kids[1].pid, signal.SIGKILL)
    kids[1].died()
    assert monotonic() - began < 1
    assert _is_alive(kids[0].pid)
    for kid in (kids[0], kids[2]):
        os.kill(kid.pid, signal.SIGKILL)
        kid.died()


def test_signals_for_everybody_are_not_for_the_template(plain: Nursery) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(plain.template.pid, number)
    assert plain.fork().do("add", 1).result == "3"


def test_random_numbers_differ_between_children(tmp_path: Path) -> None:
    (tmp_path / "dice.py").write_text(
        "import random\n"
        "from holdfast import Holdfast\n"
        "app = Holdfast('sqlite:///:memory:')\n"
        "@app.task('roll')\n"
        "def roll() -> float:\n"
        "    return random.random()\n"
    )
    with Nursery("dice:app", directory=tmp_path) as nursery:
        nursery.manifest()
        rolled = {nursery.fork().do("roll").result for _ in range(3)}
    assert len(rolled) == 3


# Nothing outlives the supervisor.


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _gone(*pids: int, seconds: float) -> None:
    began = monotonic()
    until(lambda: not any(map(_is_alive, pids)), within=10, what=f"{pids} are gone")
    assert monotonic() - began < seconds


@pytest.mark.parametrize(
    ("target", "kind", "task", "args"),
    [
        (PLAIN, "process", "sleep", "60"),
        (PLAIN, "process", "hold_the_gil", "60"),
        (PLAIN, "process", "block_signals", "60"),
        (THREADED, "process", "sleep", "60"),
        (THREADED, "process", "hold_the_gil", "60"),
        ("tests.runtime.apps.several:app", "thread", "t.sleep", "60"),
        ("tests.runtime.apps.several:app", "async", "a.block", "60"),
    ],
)
def test_everything_dies_with_the_supervisor(target: str, kind: str, task: str, args: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.support.doomed_parent", target, kind, task, args],
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    with parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        assert all(map(_is_alive, pids))
        parent.kill()
    _gone(*pids, seconds=1)


def test_what_a_child_started_dies_with_the_supervisor_too(tmp_path: Path) -> None:
    (tmp_path / "nest.py").write_text(
        "import subprocess, sys, time\n"
        "from pathlib import Path\n"
        "from holdfast import Holdfast\n"
        "app = Holdfast('sqlite:///:memory:')\n"
        "@app.task('nest')\n"
        "def nest(path: str) -> None:\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "    Path(path).write_text(str(child.pid))\n"
        "    time.sleep(60)\n"
    )
    note = tmp_path / "pid"
    parent = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.support.doomed_parent"),
            *("nest:app", "process", "nest", json.dumps(str(note))),
        ],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    with parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        until(lambda: note.exists() and note.read_text())
        pids.append(int(note.read_text()))
        parent.kill()
    _gone(*pids, seconds=1)


@pytest.mark.parametrize("target", [PLAIN, THREADED])
def test_children_outlive_the_template_but_not_the_supervisor(target: str) -> None:
    with Nursery(target) as nursery:
        nursery.manifest()
        kids: list[Kid] = [nursery.fork(), nursery.fork()]
        nursery.template.kill()
        nursery.template.wait()
        assert kids[0].do("hold_the_gil", 0).kind is Returned
        kids[1].begin("hold_the_gil", 60)
        # As the kernel does for a supervisor that is killed.
        nursery.lifeline.cut()
        _gone(*(kid.pid for kid in kids), seconds=1)


def test_a_template_that_is_let_go_takes_everybody_along() -> None:
    with Nursery(PLAIN) as nursery:
        nursery.manifest()
        kid = nursery.fork()
        kid.begin("hold_the_gil", 60)
        nursery.sock.close()
        assert nursery.template.wait(5) == 0
        _gone(kid.pid, seconds=1)
