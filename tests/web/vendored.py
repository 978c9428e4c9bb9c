"""What is vendored for tests of pages."""

from __future__ import annotations

from typing import Final

from tests.meta.tree import ROOT

AXE: Final = ROOT / "tests/web/vendor/axe.min.js"
