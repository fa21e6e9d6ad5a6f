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
SEEDS = (1, 2, 9, 10, 20, 36)
"""Any would do. What they found at first has tests of its own, here and in ``tests/kube/act/test_reservations.py``."""


def soaked(*words: str, hashing: str = "0") -> str:
    """What the program prints, with one process; ``hashing`` decides the order of sets."""
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


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_goes_wrong_whatever_fails_and_all_is_well_in_the_end(seed: int) -> None:
    said = soaked(f"--seeds={seed}")
    assert said.endswith("0 found something\n"), said
    assert said.startswith("1 seeds, 0.3"), said


def test_a_seed_repeats_to_the_byte() -> None:
    """In one process after others, and in one of its own whose sets have another order."""
    after = soaked("--seeds=2,7", "--hashes").splitlines()[1]
    alone = soaked("--seeds=7", "--hashes", hashing="1").splitlines()[0]
    assert after == alone
    assert after.startswith("7 ")
