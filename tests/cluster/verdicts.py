"""Cases of one rule that are asked one after the other: a test each would set up as much as all of them need."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize``, but one test: it asks for every case, and tells of all that went wrong."""
    several, every = (names,) if isinstance(names, str) else names, list(cases)

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        def test(**fixtures: Any) -> None:
            wrong = []
            for case in every:
                values = (case,) if isinstance(names, str) else case
                try:
                    check(**fixtures, **dict(zip(several, values, strict=True)))
                except AssertionError as error:
                    wrong.append(f"{case}: {error}")
            assert not wrong, "\n".join(wrong)

        signature = inspect.signature(check)
        left = [one for name, one in signature.parameters.items() if name not in several]
        test.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate
