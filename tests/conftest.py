"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A time limit for each example would measure how busy the machine is. All else stays as it is, also that a CI run
# (CI=true) takes the same examples each time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
