"""How long the event loop was kept from its other work: what a long computation costs everybody else."""

from __future__ import annotations

import asyncio
import time

SAMPLE_SECONDS = 0.02


class LoopLag:
    """Samples the event loop's lateness. ``longest`` is in seconds, too short by :data:`SAMPLE_SECONDS` at most."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.latest = 0.0

    async def run(self) -> None:
        """Samples until cancelled."""
        while True:
            due = time.monotonic() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            self.latest = max(0.0, time.monotonic() - due)
            self.longest = max(self.longest, self.latest)
