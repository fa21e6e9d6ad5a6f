"""Stories of some seeds, each twenty simulated minutes of faults and the time until all is healed.

``make soak`` runs as many more as one has time for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).with_name("soak.py")
FOUND_SOMETHING_ONCE = (1, 9, 10, 20, 36)
"""A pod took the room of victims of later decisions of its pass (1) and that of one that went at once (10), a spared
victim's room had been given on (20), and new leaders knew nothing of the last one's bindings (9, 36)."""
OTHERS = (2,)


def soaked(*words: str, hashing: str = "0") -> str:
    """What the program prints, with one process, and its exit code where that is not 0."""
    environment = os.environ | {"PYTHONHASHSEED": hashing}
    done = subprocess.run(
        [sys.executable, str(SOAK), "--processes=1", *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


@pytest.mark.parametrize("seed", [*FOUND_SOMETHING_ONCE, *OTHERS])
def test_nothing_goes_wrong_whatever_fails_and_all_is_well_in_the_end(seed: int) -> None:
    said = soaked(f"--seeds={seed}")
    assert said.endswith("0 found something\n"), said
    assert said.startswith("1 seeds, 0.3"), said


def test_a_seed_repeats_to_the_byte() -> None:
    """In one process after others, and in one of its own."""
    after, alone = soaked("--seeds=2,7", "--hashes").splitlines()[1], soaked("--seeds=7", "--hashes").splitlines()[0]
    assert after == alone
    assert after.startswith("7 ")
