"""Writes the Grafana dashboard: `python tools/grafana_dashboard.py`.

Owns the panels. Grafana's own export holds a hundred lines of defaults for each; here a panel is
its title, its unit and its queries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

TARGET: Final = Path(__file__).parents[1] / "docs" / "operations" / "grafana" / "holdfast.json"
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_IN: Final = '{job=~"$job",queue=~"$queue"}'
_OF: Final = '{job=~"$job",queue=~"$queue",task=~"$task"}'
_HERE: Final = '{job=~"$job"}'


def _once(expression: str) -> str:
    """Every process that is asked tells the same numbers of the fleet."""
    return f"max without (instance, job, pod) ({expression})"


def _rate(metric: str, by: str, where: str = _OF) -> str:
    return f"sum by ({by}) ({_once(f'rate({metric}{where}[$__rate_interval])')})"


def _quantile(share: float, metric: str) -> str:
    inner = _rate(f"{metric}_bucket", "le, queue")
    return f"histogram_quantile({share}, {inner})"


def _panel(
    title: str, place: tuple[int, int, int, int], unit: str, *queries: tuple[str, str], **more: Any
) -> dict[str, Any]:
    x, y, width, height = place
    kind = more.pop("kind", "timeseries")
    custom = {"fillOpacity": 10, "lineWidth": 1, "showPoints": "never", **more.pop("custom", {})}
    steps = more.pop("steps", [{"color": "green", "value": None}])
    return {
        "type": kind,
        "title": title,
        "description": more.pop("about", ""),
        "datasource": _SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": height},
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "min": 0,
                "custom": custom if kind == "timeseries" else {},
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": (
            {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
            if kind == "timeseries"
            else {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"}
        ),
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
            }
            for number, (expression, legend) in enumerate(queries)
        ],
        **more,
    }


def _bad_above(number: float) -> list[dict[str, Any]]:
    return [{"color": "green", "value": None}, {"color": "red", "value": number}]


def panels() -> list[dict[str, Any]]:
    """Every panel, from what needs attention to the details."""
    workers = 'holdfast_workers{job=~"$job",state="alive"}'
    silent = 'holdfast_workers{job=~"$job",state="silent"}'
    pending = 'holdfast_queue_tasks{job=~"$job",queue=~"$queue",state="pending"}'
    running = 'holdfast_queue_tasks{job=~"$job",queue=~"$queue",state="running"}'
    oldest = f"holdfast_queue_oldest_pending_seconds{_IN}"
    failed = '{job=~"$job",queue=~"$queue",task=~"$task",outcome=~"failed|stalled|dropped"}'
    stat = {"kind": "stat"}
    found = [
        _panel("Workers", (0, 0, 4, 4), "short", (f"max({workers})", ""), **stat),
        _panel(
            "Silent workers",
            (4, 0, 4, 4),
            "short",
            (f"max({silent})", ""),
            steps=_bad_above(1),
            about="They have not said that they stop, and their lease has passed.",
            **stat,
        ),
        _panel("Waiting", (8, 0, 4, 4), "short", (f"sum({_once(pending)})", ""), **stat),
        _panel("Oldest waiting", (12, 0, 4, 4), "s", (f"max({oldest})", ""), **stat),
        _panel(
            "Dead letters",
            (16, 0, 4, 4),
            "short",
            (f"sum({_once(f'holdfast_dead_letters{_IN}')})", ""),
            steps=_bad_above(1),
            **stat,
        ),
        _panel(
            "Schedule lag",
            (20, 0, 4, 4),
            "s",
            (f"max(holdfast_schedule_lag_seconds{_HERE})", ""),
            steps=_bad_above(60),
            **stat,
        ),
        _panel(
            "Sent and ended",
            (0, 4, 12, 8),
            "ops",
            (_rate("holdfast_tasks_sent_total", "queue"), "sent {{queue}}"),
            (_rate("holdfast_tasks_finished_total", "queue"), "ended {{queue}}"),
        ),
        _panel(
            "Failures by task",
            (12, 4, 12, 8),
            "ops",
            (
                _rate("holdfast_tasks_finished_total", "task, outcome", failed),
                "{{task}} {{outcome}}",
            ),
            (_rate("holdfast_tasks_retried_total", "task"), "{{task}} retried"),
        ),
        _panel(
            "Waiting tasks",
            (0, 12, 12, 8),
            "short",
            (_once(pending), "{{queue}}"),
            about="Counted up to 100,000.",
        ),
        _panel("Running tasks", (12, 12, 12, 8), "short", (_once(running), "{{queue}}")),
        _panel(
            "Wait until a task begins",
            (0, 20, 12, 8),
            "s",
            (_quantile(0.5, "holdfast_task_queue_wait_seconds"), "p50 {{queue}}"),
            (_quantile(0.95, "holdfast_task_queue_wait_seconds"), "p95 {{queue}}"),
        ),
        _panel(
            "Run time",
            (12, 20, 12, 8),
            "s",
            (_quantile(0.5, "holdfast_task_duration_seconds"), "p50 {{queue}}"),
            (_quantile(0.95, "holdfast_task_duration_seconds"), "p95 {{queue}}"),
        ),
        _panel(
            "Workers that are not ready",
            (0, 28, 8, 6),
            "short",
            (f"1 - holdfast_worker_ready{_HERE}", "{{instance}}"),
            about="Workers with a port of their own (`--http`).",
        ),
        _panel(
            "Memory of workers",
            (8, 28, 8, 6),
            "bytes",
            (f"holdfast_worker_memory_bytes{_HERE}", "{{instance}}"),
        ),
        _panel(
            "Leases",
            (16, 28, 8, 6),
            "short",
            (f"max(holdfast_leases{_HERE})", "held"),
            (f"max(holdfast_lease_overdue_seconds{_HERE})", "oldest is over for (s)"),
        ),
    ]
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _variable(name: str, query: str, *, every: str = ".*") -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "includeAll": True,
        "allValue": every,
        "multi": True,
        "refresh": 2,
        "sort": 1,
        "current": {"text": "All", "value": "$__all"},
    }


def dashboard() -> dict[str, Any]:
    """The whole document."""
    return {
        "uid": "holdfast",
        "title": "Holdfast",
        "tags": ["holdfast"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "current": {}},
                _variable("job", "label_values(holdfast_workers, job)"),
                _variable("queue", 'label_values(holdfast_queue_tasks{job=~"$job"}, queue)'),
                _variable(
                    "task", 'label_values(holdfast_tasks_finished_total{queue=~"$queue"}, task)'
                ),
            ]
        },
        "annotations": {"list": []},
        "panels": panels(),
    }


def text() -> str:
    """What the file holds."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
