"""`stats`: what was counted lately, per queue and task."""

from __future__ import annotations

from holdfast.store.verbs import statistics
from holdfast.store.verbs.statistics import Tally
from tests.cli.conftest import Operator
from tests.support.stores import Lab


def test_nothing_counted(operator: Operator) -> None:
    said = operator("stats")
    assert len(said.lines) == 1
    assert said.err.startswith("nothing was counted in the last 15 min: is a worker at work?")
    assert operator("stats", "--json").json == {"last": 900.0, "counted": [], "depths": []}


def test_by_queue_and_by_task(operator: Operator, lab: Lab) -> None:
    lab.send_many(2, queue_name="deep")
    counts = {"completed": 3, "failed": 1, "sent": 9, "retried": 2}
    tally = Tally.of("w", "mail", "t", wait_us=5_000_000, wait_08=5, run_us=10, run_00=5, **counts)
    lab.run(statistics.add_tallies([tally, Tally.of("w", "mail", "u", cancelled=1)]))
    times = ["0.750s", "0.975s", "0.001s", "0.001s"]
    assert operator("stats").rows == [
        ["deep", "2", "0", "0", "0", "0", "0", "0", "0", "-", "-", "-", "-"],
        ["mail", "0", "0", "0.6", "0.3", "9", "5", "1", "2", *times],
    ]
    assert operator("stats", "--by", "task", "--last", "6h").rows == [
        ["mail", "t", "0.0", "0.0", "9", "4", "1", "2", *times],
        ["mail", "u", "0.0", "0.0", "0", "1", "0", "0", "-", "-", "-", "-"],
    ]
    found = operator("stats", "-q", "mail", "-n", "u", "--json").json
    assert [each["finished"]["cancelled"] for each in found["counted"]] == [1]
    assert found["depths"] == []


def test_a_length_of_time(operator: Operator) -> None:
    assert operator("stats", "--json", "--last", "90").json["last"] == 90.0
    assert operator("stats", "--json", "--last", "2h").json["last"] == 7200.0
    for wrong in ("soon", "-5m", "1000000d"):
        said = operator("stats", "--last", wrong, code=2).err
        assert f"Invalid value for '--last': '{wrong}' is not a length of time" in said
