"""Settings are strict: what is not understood is refused, with the place and what would be right."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide import settings, settings_page
from slacktide.config import Config, preset
from slacktide.conversion import Kind
from slacktide.errors import ConfigError
from slacktide.metrics.columns import classes_of
from slacktide.model import DisruptionLimits, Hours, PenaltyTier, ServiceClass, Window
from slacktide.model.limit_fields import hours_of_text
from slacktide.state.cluster import score_name
from support.repository import REPOSITORY

KUEUE = "{scope: PreemptedWorkload, limit: %d, limitWindowSeconds: 3600}"


def refused(path: Path | None = None, *words: str) -> str:
    with pytest.raises(ConfigError) as caught:
        settings.load(path, None, words)
    return str(caught.value)


def written(directory: Path, name: str, text: str) -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_without_anything_the_recommended_settings_hold() -> None:
    assert settings.load() == Config() == preset("recommended")


def test_the_last_one_wins(tmp_path: Path) -> None:
    path = written(tmp_path, "a.yaml", "policy: {patience: 7, victims: same-pass}\n")
    config = settings.load(path, "published", ["policy.patience=9", "policy.patience=11"])
    assert config.policy.preempt_when == "better"  # preset
    assert config.policy.victims == "same-pass"  # file over preset
    assert config.policy.patience == 11.0  # the last word over the file


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.yaml",
            "qos: {alpha: 22.5, margin: 5}\nsimulation: {seed: 3, end: 3600}\noptimize: {shared_evaluations: no}\n",
        ),
        ("a.toml", "optimize.shared_evaluations=false\n[qos]\nalpha=22.5\nmargin=5\n[simulation]\nseed=3\nend=3600\n"),
        (
            "a.json",
            '{"qos":{"alpha":22.5,"margin":5},"simulation":{"seed":3,"end":3600},"optimize":{"shared_evaluations":false}}',
        ),
    ],
)
def test_the_three_formats_say_the_same(tmp_path: Path, name: str, text: str) -> None:
    config = settings.load(written(tmp_path, name, text))
    assert (config.qos.alpha, config.qos.margin) == (22.5, 5.0)
    assert (config.simulation.seed, config.simulation.end) == (3, 3600.0)
    assert config.optimize.shared_evaluations is False
    assert isinstance(config.qos.margin, float)


def limited(limits: str) -> str:
    """A settings file with a class that has these limits."""
    return f"classes:\n  - {{name: a, slo: 0.9, rank: 1, {limits}}}\n"


@pytest.mark.parametrize(
    ("text", "line", "parts"),
    [
        ("policy:\n  name: priority\n  patienec: 3\n", 3, ["policy.patienec", "unknown", "'patience'"]),
        ("polici:\n  name: priority\n", 1, ["polici", "unknown section", "'policy'"]),
        ("qos:\n  alpha: -1\n", 2, ["qos.alpha", "-1", "from 0 to"]),
        ("qos:\n  alpha: .nan\n", 2, ["qos.alpha", "nan"]),
        ("qos:\n  alpha: ten\n", 2, ["qos.alpha", "'ten'", "a number"]),
        ("qos:\n  alpha: true\n", 2, ["qos.alpha", "True", "a number"]),
        ("simulation:\n  seed: 1.0\n", 2, ["simulation.seed", "1.0", "a whole number"]),
        ("policy:\n  preempt_when: neeeded\n", 2, ["policy.preempt_when", "'neeeded'", "'needed'"]),
        ("policy:\n  - name\n", 1, ["policy", "expected settings"]),
        ("policy:\n  name: a\n  name: b\n", 3, ["named twice"]),
        ("policy: [\n", 2, ["not YAML"]),
        ("policy: &a {name: priority}\nqos: *a\n", 1, ["alias"]),
        ("version: 2\n", 1, ["version", "2", "expected 1"]),
        ("classes:\n  - {name: a, slo: 0.9}\n", 2, ["rank is missing"]),
        ("classes:\n  - {name: a, slo: 1.9, rank: 1}\n", 2, ["slo", "1.9"]),
        ("classes:\n  - {name: a, slo: 0.9, rank: 1}\n  - {name: a, slo: 0.8, rank: 2}\n", 3, ["'a' twice"]),
        ("classes:\n  - {name: a, slo: 0.9, rank: 1, tires: []}\n", 2, ["tires", "'tiers'"]),
        (limited("cooldown: 10x"), 2, ["cooldown", "'10x'", "seconds, or numbers with units"]),
        (limited("cooldown: [1]"), 2, ["cooldown", "[1]", "seconds, or numbers with units"]),
        (limited("min_running: -1"), 2, ["min_running", "-1", "seconds"]),
        (limited("disruptions: {max: 2}"), 2, ["disruptions", "per is missing"]),
        (limited("disruptions: {max: 65, per: 1h}"), 2, ["disruptions.max", "65", "from 0 to 64"]),
        (limited("disruptions: {max: 1.5, per: 1h}"), 2, ["disruptions.max", "1.5", "a whole number"]),
        (limited("disruptions: {max: 1, per: 0}"), 2, ["disruptions.per", "0.0", "above 0"]),
        (
            limited("preemption_limit: {scope: Global, limit: 1, limitWindowSeconds: 5}"),
            2,
            ["preemption_limit.scope", "'Global'", "'PreemptedWorkload'"],
        ),
        (limited(f"preemption_limit: {KUEUE % 65}"), 2, ["preemption_limit.limit", "65", "0 to 64"]),
        (
            limited("preemption_limit: {scope: PreemptedWorkload, limit: 1}"),
            2,
            ["preemption_limit", "limitWindowSeconds is missing"],
        ),
        (
            limited(f"disruptions: {{max: 1, per: 1h}}, preemption_limit: {KUEUE % 1}"),
            2,
            ["preemption_limit", "disruptions as well", "one of them"],
        ),
        (limited("hours: []"), 2, ["hours", "at least one"]),
        (limited("hours: [{days: [Mon], from: '7', to: '08:00'}]"), 2, ["hours.from", "'7'", "such as 22:00"]),
        (limited("hours: [{days: [Someday], from: '07:00', to: '08:00'}]"), 2, ["hours.days", "Someday", "Mon, Tue"]),
        (limited("hours: [{days: [Mon], from: '07:00', until: '08:00'}]"), 2, ["until", "unknown", "days, from, to"]),
        (
            limited("hours: [{days: [Mon], from: '07:00', to: '08:00', time_zone: Mars}]"),
            2,
            ["time zone", "'Mars'", "Europe/Berlin"],
        ),
    ],
)
def test_errors_name_file_line_and_what_is_right(tmp_path: Path, text: str, line: int, parts: list[str]) -> None:
    path = written(tmp_path, "a.yaml", text)
    message = refused(path)
    assert message.startswith(f"{path}:{line}: ")
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("policy.patienec=3", ["policy.patienec", "'patience'"]),
        ("polcy.patience=3", ["policy.patience"]),
        ("policy.patience", ["SECTION.KEY=VALUE"]),
        ("patience=3", ["SECTION.KEY=VALUE"]),
        ("policy.patience=1_0", ["'1_0'", "a number"]),
        ("policy.patience=inf", ["inf", "from 0 to"]),
        ("policy.name=", ["''", "text"]),
        ("policy.patience=none", ["'none'"]),
        ("simulation.seed=99999999999999999999", ["2^63 - 1"]),
        ("scheduler.watchdog=0", ["above 0"]),
        ("optimize.relaxed_randomization=1.5", ["at most 1"]),
        ("optimize.shared_evaluations=maybe", ["'maybe'", "true or false"]),
        ("classes.gold=1", ["settings file"]),
    ],
)
def test_words_are_checked_alike(word: str, parts: list[str]) -> None:
    message = refused(None, word)
    for part in parts:
        assert part in message


def test_none_takes_a_value_back() -> None:
    assert settings.load(None, None, ["simulation.end=5", "simulation.end=none"]).simulation.end is None


def test_classes_come_from_the_file(tmp_path: Path) -> None:
    text = "classes:\n- {name: a, slo: 0.95, rank: 1, overhead_limit: 0.5}\n"
    text += "- {name: b, slo: 0.5, rank: 1, tiers: [{boundary: 0.9, bonus: 2}]}\n"
    assert settings.load(written(tmp_path, "a.yml", text)).classes == (
        ServiceClass("a", 0.95, 1, overhead_limit=0.5),
        ServiceClass("b", 0.5, 1, tiers=(PenaltyTier(0.9, 2),)),
    )


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.toml"])
@pytest.mark.parametrize(
    "content", [b"\xff\xfe", b"[1, 2]", b"][", b"\x00", b"9" * 5000, b"[" * 3000, b"a: 2020-99-99"]
)
def test_a_broken_file_is_one_clear_error(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert refused(path).startswith(str(path))


def test_a_missing_file_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "none.yaml")
    assert "expected a name ending in" in refused(tmp_path / "a.ini")


def test_limits_of_classes_come_from_the_file_and_go_back_there(tmp_path: Path) -> None:
    text = limited(
        "disruptions: {max: 2, per: 1h}, cooldown: 10m, min_running: 90, hours: [{days: [Mon, Fri], from: 22:00, "
        "to: '06:00', time_zone: Europe/Berlin}, {days: [Sun], from: '00:00', to: 24:00}]"
    )
    config = settings.load(written(tmp_path, "a.yaml", text))
    hours = (Hours(("Mon", "Fri"), 1320, 360, "Europe/Berlin"), Hours(("Sun",), 0, 1440))
    assert config.classes == (ServiceClass("a", 0.9, 1, limits=DisruptionLimits(2, 3600.0, 600.0, hours, 90.0)),)
    again = json.dumps(settings.to_mapping(config), allow_nan=False)
    assert settings.load(written(tmp_path, "a.json", again)) == config
    assert classes_of({"configuration": json.loads(again)}) == config.classes
    for some in ("cooldown: 0.5s", "min_running: 0", "disruptions: {max: 0, per: 0.25}"):
        one = settings.load(written(tmp_path, "b.yaml", limited(some)))
        assert one.classes[0].limits is not None
        assert settings.load(written(tmp_path, "b.json", json.dumps(settings.to_mapping(one)))) == one
    assert settings.load(written(tmp_path, "c.yaml", limited("cooldown: null"))).classes[0].limits is None
    kueue = settings.load(written(tmp_path, "d.yaml", limited(f"preemption_limit: {KUEUE % 2}")))
    assert kueue.classes[0].limits == DisruptionLimits(2, 3600.0)
    assert settings.load(written(tmp_path, "d.json", json.dumps(settings.to_mapping(kueue)))) == kueue


def test_a_window_is_written_out_with_its_budget_which_is_whole_where_the_file_says_none(tmp_path: Path) -> None:
    """So a manifest or a record means the same where another budget is the default."""
    text = "classes:\n- {name: a, slo: 0.95, rank: 1, window: {rolling: 30d%s}}\n"
    for said, budget in (("", "whole"), (", budget: whole", "whole"), (", budget: accrued", "accrued")):
        config = settings.load(written(tmp_path, "a.yaml", text % said))
        assert config.classes[0].window == Window(rolling=30 * 86_400.0, budget=budget)
        mapping = settings.to_mapping(config)
        assert mapping["classes"][0]["window"]["budget"] == budget
        assert settings.load(written(tmp_path, "b.json", json.dumps(mapping))) == config


def test_how_long_a_class_starts_comes_from_the_file_and_goes_back_there(tmp_path: Path) -> None:
    text = "classes:\n- {name: a, slo: 0.95, rank: 1, alpha: %s}\n"
    for said, seconds in (("3m", 180.0), ("0", 0.0), ("22.5", 22.5), ("1h", 3600.0), ("null", None)):
        config = settings.load(written(tmp_path, "a.yml", text % said))
        assert config.classes == (ServiceClass("a", 0.95, 1, alpha=seconds),)
        again = json.dumps(settings.to_mapping(config))
        assert settings.load(written(tmp_path, "b.json", again)) == config
    for wrong, words in (
        ("61m", "from 0 to 3600"),
        ("-1", "found -1"),
        ("soon", "alpha: found 'soon', expected seconds"),
    ):
        with pytest.raises(ConfigError) as caught:
            settings.load(written(tmp_path, "a.yml", text % wrong))
        assert "a.yml:2: " in str(caught.value)
        assert "'a': alpha: " in str(caught.value)
        assert words in str(caught.value)


def test_hours_of_an_annotation_are_those_of_a_class() -> None:
    assert hours_of_text("Sat,Sun 00:00-24:00 Europe/Berlin") == (Hours(("Sat", "Sun"), 0, 1440, "Europe/Berlin"),)
    night = Hours(("Mon", "Tue", "Wed", "Fri"), 1320, 360)
    assert hours_of_text(" Mon-Wed,Fri 22:00-06:00 ; Sun 01:00-02:00 UTC") == (night, Hours(("Sun",), 60, 120))
    for wrong in (
        "",
        "Mon",
        "Mon 22:00",
        "Mon 22:00-06:00 UTC UTC",
        "Fri-Mon 01:00-02:00",
        "Mon 1-2",
        "Mon 22:00-22:00",
    ):
        with pytest.raises(ConfigError, match="hours"):
            hours_of_text(wrong)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'published'"):
        settings.load(None, "publised")


def test_a_mapping_of_the_settings_reads_back_unchanged(tmp_path: Path) -> None:
    config = settings.load(None, "published", ["qos.margin=3", "simulation.end=60", "startup.hot=uniform:1,2"])
    config = dataclasses.replace(config, classes=(ServiceClass("x", 0.7, 4, overhead_limit=0.1),))
    text = json.dumps(settings.to_mapping(config), allow_nan=False)
    assert settings.load(written(tmp_path, "a.json", text)) == config


def test_a_manifest_is_a_settings_file(tmp_path: Path) -> None:
    config = settings.load(None, "published", ["simulation.seed=12"])
    manifest = {"format": "any", "configuration": settings.to_mapping(config), "seed": 12}
    assert settings.load(written(tmp_path, "manifest.json", json.dumps(manifest))) == config


@pytest.mark.parametrize(
    ("policy", "score", "expected"),
    [
        ("qos-driven", "default", "balanced"), ("hybrid", "default", "balanced"),
        ("mine.py:Mine", "default", "balanced"), ("priority", "default", "mean"),
        ("qos-driven", "mean", "mean"), ("priority", "balanced", "balanced"), ("kcss", "default", "kcss"),
        ("kcss", "mean", "kcss"), ("qos-driven", "delay-aware", "delay-aware"),
    ],
)  # fmt: skip
def test_the_default_score_is_that_of_the_policy(policy: str, score: str, expected: str) -> None:
    config = settings.load(None, None, [f"policy.name={policy}", f"policy.score={score}"])
    assert score_name(config) == expected


@pytest.mark.parametrize("name", ["recommended", "published"])
def test_a_cluster_decides_by_the_policy_of_the_simulator(name: str) -> None:
    assert settings.load_live(None, name).policy == settings.load(None, name).policy


def test_a_manifest_means_what_it_meant_when_it_was_written(tmp_path: Path) -> None:
    configuration = settings.to_mapping(Config())
    for key in ("overload", "savable", "overload_patience", "recovery", "floor"):
        del configuration["policy"][key]
    path = written(tmp_path, "manifest.json", json.dumps({"format": "any", "configuration": configuration}))
    assert settings.load(path).policy == dataclasses.replace(Config().policy, overload="share")
    del configuration["policy"]["cost"], configuration["policy"]["reprieve"]
    path = written(tmp_path, "manifest.json", json.dumps({"format": "any", "configuration": configuration}))
    then = dataclasses.replace(Config().policy, overload="share", cost="default", reprieve=False)
    assert settings.load(path).policy == then


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_word_is_understood_or_refused(name: str, value: str) -> None:
    for key in (name, f"qos.{name}", "qos.alpha", "simulation.seed", "policy.preempt_when"):
        with contextlib.suppress(ConfigError):  # anything else fails the test
            config = settings.load(None, None, [f"{key}={value}"])
            assert json.dumps(settings.to_mapping(config), allow_nan=False)


def test_every_number_has_a_range_that_excludes_infinity() -> None:
    numbers = {
        f"{section}.{key}": Kind.of(kind).meta
        for section in settings.SECTIONS
        for key, kind in settings.types_of(section).items()
        if Kind.of(kind).plain in (int, float)
    }
    assert len(numbers) == 46
    assert [name for name, meta in numbers.items() if meta.le is None or (meta.ge is None) == (meta.gt is None)] == []


def test_the_page_in_docs_is_current() -> None:
    assert (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8") == settings_page.page()


def test_the_page_lists_every_setting_and_what_the_papers_chose() -> None:
    page = settings_page.page()
    assert all(f"| `{key}` |" in page for key in settings.names())
    assert [row.key for row in settings_page.describe() if not row.meaning] == []
    assert "| `qos.alpha` | `22.37107` |" in page
    assert "| `policy.patience` | `60` (published: `0`) | duration |" in page
    assert [row.key for row in settings_page.describe() if re.search(r"\de[+-]?\d", row.allowed)] == []


@pytest.mark.parametrize("beside", ["optimize.shared_evaluations=true", "optimize.equivalence_tolerance=1"])
def test_what_a_search_in_random_order_would_leave_out_is_refused_beside_it(beside: str) -> None:
    alone = ["optimize.relaxed_randomization=0.5", "optimize.shared_evaluations=false"]
    assert settings.load(overrides=alone).optimize.relaxed_randomization == 0.5
    with pytest.raises(ConfigError, match=r"relaxed_randomization: found 0\.5 beside shared.*add optimize\.shared"):
        settings.load(overrides=[*alone, beside])


def test_a_live_scheduler_has_its_own_order_of_equals() -> None:
    words = ["policy.name=priority", "policy.equals=kube-scheduler"]
    assert settings.load(overrides=words).policy.equals == "kube-scheduler"
    with pytest.raises(ConfigError, match=r"policy\.equals: found 'kube-scheduler', expected 'admission': .*; leave"):
        settings.load_live(overrides=words)
