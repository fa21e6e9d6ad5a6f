"""The scores that ask where users are, by the code of the settings, and the addresses that kernels call them by."""

from __future__ import annotations

from slacktide.kernels import delay, elastic_fog, kcss, nas, tsra
from slacktide.kernels.compiling import ByAddress
from slacktide.kernels.tables import DELAY_AWARE, ELASTIC_FOG, KCSS, NAS, TSRA

PLACERS: dict[int, dict[str, ByAddress]] = {
    DELAY_AWARE: {"score": delay.score, "choose": delay.choose, "near": delay.find_near},
    ELASTIC_FOG: {"choose": elastic_fog.choose},
    TSRA: {"score": tsra.score, "choose": tsra.choose},
    NAS: {"score": nas.score, "choose": nas.choose},
    KCSS: {"score": kcss.score, "choose": kcss.choose},
}
"""``score(tb, h, shape)`` tells places to preempt apart (without one: the default score does), ``choose(tb, shape)``
compares hosts with room, ``near(tb, kind)`` does so without looking at all of them."""


def addresses(score: int) -> dict[str, int]:
    """The fields ``placer_*`` of the rules for a score; compiles what it needs, seconds without a cache."""
    return {f"placer_{part}": code.address for part, code in PLACERS.get(score, {}).items()}
