"""The programs of bench/, which is no package."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from support.repository import REPOSITORY


def loaded(name: str) -> Any:
    """A module of the folder bench, which is no package."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", REPOSITORY / "bench" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
