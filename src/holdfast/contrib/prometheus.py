"""The metrics of the fleet in a registry of `prometheus_client`, beside those of your own.

    REGISTRY.register(FleetCollector(app))

Owns no metric: they are read from the store whenever the registry is asked (`core/metrics.py`).
With several processes of one application each tells the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.core.errors import ConfigError

try:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.parser import text_string_to_metric_families
    from prometheus_client.registry import Collector
except ImportError as missing:
    raise ConfigError(
        "holdfast.contrib.prometheus needs the client: pip install 'holdfast[prometheus]'"
    ) from missing

if TYPE_CHECKING:
    from holdfast.app import Holdfast

__all__ = ["FleetCollector"]


class FleetCollector(Collector):
    """Reads the metrics of an app's fleet; raises what the store raises while it is away."""

    def __init__(self, app: Holdfast) -> None:
        self._app = app

    def describe(self) -> Iterable[Metric]:
        """Nothing: the store is not asked when this is registered."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The metrics as they are now."""
        return text_string_to_metric_families(self._app.control.stats.prometheus())
