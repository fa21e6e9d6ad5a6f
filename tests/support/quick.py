"""A plugin of pytest (``-p support.quick``): leaves out what is marked slow.

``-m "not slow"`` does the same, but make would have a shell read the quotes, which stands between it and the leash.
"""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect them."""
    slow = [one for one in items if one.get_closest_marker("slow") is not None]
    config.hook.pytest_deselected(items=slow)
    items[:] = [one for one in items if one.get_closest_marker("slow") is None]
