"""One way to write durations and shares: on the command line, in settings files, and what is written is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide import settings
from slacktide.errors import ConfigError
from slacktide.for_people import duration
from slacktide.model.durations import parse_duration, parse_share


@pytest.mark.parametrize(
    ("text", "value"), [("90%", 0.9), ("99.9 %", 0.999), ("0.95", 0.95), (".5", 0.5), (1, 1.0), ("12.5%", 0.125)]
)
def test_shares_are_numbers_or_per_cent(text: str | float, value: float) -> None:
    assert parse_share(text) == value


@pytest.mark.parametrize("text", ["", "%", "ninety", "-1%", "1e3%", "0,9", "nan"])
def test_what_is_no_share_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a share, such as 0\.9 or 90%"):
        parse_share(text)


@pytest.mark.parametrize(("word", "value"), [("1h", 3600.0), ("1h30m", 5400.0), ("90", 90.0), ("2d", 172_800.0)])
def test_settings_that_are_times_take_durations_as_words_and_in_files(word: str, value: float, tmp_path: Path) -> None:
    assert settings.load(None, None, [f"simulation.end={word}"]).simulation.end == value
    assert settings.load(None, None, [f"policy.patience={word}"]).policy.patience == value
    file = tmp_path / "s.yaml"
    file.write_text(f"simulation:\n  end: {word}\nkube:\n  watch_seconds: {word}\n")
    config = settings.load(file, "recommended") if value <= 86_400 else None
    assert config is None or (config.simulation.end, config.kube.watch_seconds) == (value, value)


def test_settings_that_are_shares_take_per_cent() -> None:
    assert settings.load(None, None, ["policy.floor=5%"]).policy.floor == 0.05


@pytest.mark.parametrize("word", ["simulation.end=1x", "simulation.end=0h", "simulation.end=m", "policy.alpha=1h1h"])
def test_what_is_no_duration_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=r"a duration such as 10m or 1h30m|above 0|unknown"):
        settings.load(None, None, [word])


def test_a_number_that_is_no_time_takes_no_duration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"simulation\.seed: found '1h', expected a whole number"):
        settings.load(None, None, ["simulation.seed=1h"])
    file = tmp_path / "s.yaml"
    file.write_text("simulation:\n  seed: 1h\n")
    with pytest.raises(ConfigError, match=r"s\.yaml:2: .*seed: found '1h', expected a whole number"):
        settings.load(file)


@pytest.mark.parametrize("value", [0.0, 0.5, 12.3, 99.9, 100.0, 3600.0, 3725.0, 90_000.0, 2_592_000.0])
def test_the_times_that_commands_write_are_read_back(value: float) -> None:
    assert parse_duration(duration(value)) == value
