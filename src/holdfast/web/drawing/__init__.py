"""What pages draw, as numbers: charts, the map of the lifecycle, graphs. No markup, no I/O."""
