"""The Grafana dashboard and the alert rules: loaded, and every metric that they name is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml

from holdfast.core.metrics import DepthNow, FleetReading, families
from holdfast.core.statistics import COUNTERS
from tools import grafana_dashboard

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations"
RULES = OPERATIONS / "prometheus" / "holdfast-rules.yml"
METRICS_PAGE = OPERATIONS.parent / "howto" / "metrics-and-traces.md"
_SERIES = re.compile(r"(holdfast_\w+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r'(\w+)\s*(?:=~|!=|=|!~)\s*"([^"]*)"')


def told() -> dict[str, set[str]]:
    """Every series of a fleet and of a worker, with its labels."""
    counts = dict.fromkeys(COUNTERS, 1)
    reading = FleetReading(
        [("q", "t", counts)], {"q": DepthNow()}, {"alive": 1, "silent": 0}, 0, 0, 0, 0
    )
    found: dict[str, set[str]] = {}
    for family in families(reading):
        for sample in family.samples:
            labels = {name for name, _ in sample.labels}
            found.setdefault(family.name + sample.suffix, set()).update(labels)
    return found | _of_a_worker()


def _of_a_worker() -> dict[str, set[str]]:
    """As its page says; tests/e2e/test_http_port.py reads them from a worker."""
    rows = re.findall(
        r"\| `(holdfast_worker_\w+)` \| ([\w, ]*) ?\|", METRICS_PAGE.read_text("utf-8")
    )
    return {name: {label.strip() for label in labels.split(",")} - {""} for name, labels in rows}


def named(expression: str) -> list[tuple[str, dict[str, str]]]:
    return [(name, dict(_LABEL.findall(within))) for name, within in _SERIES.findall(expression)]


def check(expression: str, where: str) -> None:
    known = told()
    found = named(expression)
    assert found, f"{where} names no metric: {expression}"
    for name, labels in found:
        assert name in known, f"{where} names {name}, which nobody tells"
        strange = labels.keys() - known[name] - {"job", "instance"}
        assert not strange, f"{where}: {name} has no label {strange}"
    assert expression.count("(") == expression.count(")"), where
    assert expression.count("{") == expression.count("}"), where


def test_the_dashboard_is_what_its_tool_writes() -> None:
    said = grafana_dashboard.TARGET.read_text(encoding="utf-8")
    assert said == grafana_dashboard.text(), "run `python tools/grafana_dashboard.py`"


def test_the_dashboard_asks_for_what_there_is() -> None:
    dashboard = json.loads(grafana_dashboard.TARGET.read_text(encoding="utf-8"))
    panels: list[dict[str, Any]] = dashboard["panels"]
    assert len(panels) > 10
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} lies over another panel"
        assert place["x"] + place["w"] <= 24
        taken |= cells
        for target in panel["targets"]:
            check(target["expr"], panel["title"])
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert (
                    label in target["expr"]
                    or label == "instance"
                    or "max without" in target["expr"]
                )
    names = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$(?!__)\{?(\w+)", json.dumps(panels)))
    assert used <= names


def test_the_rules_ask_for_what_there_is() -> None:
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    (group,) = rules["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names)
    page = (OPERATIONS / "monitoring.md").read_text(encoding="utf-8")
    for rule in group["rules"]:
        check(rule["expr"], rule["alert"])
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert f"`{rule['alert']}`" in page
    for outcome in re.findall(r'outcome=~"([^"]*)"', RULES.read_text(encoding="utf-8")):
        assert set(outcome.split("|")) <= set(COUNTERS)


def test_the_page_lists_every_metric() -> None:
    page = METRICS_PAGE.read_text(encoding="utf-8")
    for family in families(FleetReading([], {}, {}, 0, 0, 0, 0)):
        assert f"| `{family.name}` |" in page
