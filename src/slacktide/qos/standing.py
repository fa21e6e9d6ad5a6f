"""How promises stand, of arrays in plain NumPy: what :mod:`slacktide.kernels.qos.slo_status` says of one request."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def at_risk(left: Floats, delivered: Floats, slo: Floats, margin: Floats) -> NDArray[np.bool_]:
    """Whether promises that are kept are at risk (docs/semantics.md, 'Kept, AtRisk, Missed'). Shapes (n,).

    ``left``: seconds until a promise breaks, without what decisions hold back for a start-up.
    """
    return np.asarray((left < margin) & (delivered < 0.5 * (1.0 + slo)), np.bool_)


def left_of(delivered: Floats, lifetime: Floats, slo: Floats) -> Floats:
    """Seconds until the promise breaks, e / sigma - T where e is ``delivered`` of the lifetime T. Shapes (n,)."""
    return delivered * lifetime / slo - lifetime


def delivered_of(left: Floats, lifetime: Floats, slo: Floats) -> Floats:
    """What was delivered, a share, where so many seconds are left; 1 where nothing was owed yet. Shapes (n,)."""
    earned = slo * (left + lifetime)
    return np.clip(np.divide(earned, lifetime, out=np.ones_like(earned), where=lifetime > 0.0), 0.0, 1.0)


def budget_left(promised: float, delivered: float) -> float:
    """The share of the error budget, 1 - sigma, that is not lost; of a promise of 1, which has none, 1 or 0."""
    if promised >= 1.0:
        return float(delivered >= 1.0)
    return 1.0 - (1.0 - delivered) / (1.0 - promised)
