"""No workload suffers more than its class allows, whoever leads and however often leaders are killed."""

from __future__ import annotations

from typing import Any

from cluster.labtools import deployment, pod
from simulated.resources import Json
from simulated.stage import Life, Stage, service_class, staged

KILLS = 6
PER, COOLDOWN = 20.0, 6.0
"""Seconds."""
BLUR = 0.05
"""What the way to the API server takes at most, and back."""
CLASS_OF: dict[str, Json] = {
    "often": {"disruptions": {"max": 2, "per": f"{PER:g}s"}},
    "calm": {"cooldown": f"{COOLDOWN:g}s"},
    "never": {"disruptions": {"max": 0, "per": "1h"}},
    "free": {},
}
OWN = {"own": ("often", {"slacktide.io/disruptions": "1 per 40s"})}
"""A workload of a class that is stricter by itself."""
COUNTS = {"often": 3, "calm": 3, "never": 2, "free": 3, "own": 3}


def brief(name: str, **annotations: str) -> dict[str, Any]:
    """Settings of a pod of a class that starts and ends within a second."""
    quick = {"slacktide.io/startup-seconds": "0.3", "slacktide.io/shutdown-seconds": "0.4"}
    settings = {"labels": {"slacktide.io/class": name}, "annotations": quick | annotations}
    return settings | {"terminationGracePeriodSeconds": 1}


def come_and_go(place: Stage, seconds: float, names: list[str]) -> None:
    """Pods each of which wants the place of somebody else, for so long; ``names``: of those that are there."""
    draw, until = place.world.chance.of("golden pods"), place.now + seconds
    while place.now < until:
        place.wait(draw.uniform(0.05, 0.4))
        if len(names) < 8 and draw.random() < 0.6:
            names.append(f"gold-{place.now:.3f}".replace(".", "-"))
            place.create("pods", pod(names[-1], cpu="1", **brief("gold")))
        elif names:
            place.delete("pods", names.pop(draw.randrange(len(names))))


def too_many(times: list[float], most: int, per: float) -> list[tuple[float, ...]]:
    """Runs of more than ``most`` within ``per`` seconds."""
    runs = (tuple(times[i : i + most + 1]) for i in range(len(times) - most))
    return [run for run in runs if run[-1] - run[0] < per - BLUR]


def too_soon(life: Life, lives: list[Life], count: int) -> str:
    """What is wrong with an eviction of a workload with a cooldown, of ``count`` pods; empty where nothing is."""
    assert life.evicted is not None
    at = life.evicted
    before = [one.evicted for one in lives if one.evicted is not None and one.evicted < at]
    if not before:
        return ""
    up = sum(any(begin <= at <= end for begin, end in one.up) for one in lives)
    if up < count:
        return f"only {up} of {count} were ready"
    came = max(begin for one in lives for begin, _ in one.up if begin <= at)
    return "" if came > max(before) and at - came >= COOLDOWN - 1.0 - BLUR else f"{at - came:.2f} s after one was ready"


def test_no_limit_is_exceeded_while_leaders_are_killed() -> None:
    classes = [service_class("gold", 0.999, 1)]
    classes += [
        service_class(name, 0.02, 3, overheadLimit=1.0, marginSeconds=0.5, **limits)
        for name, limits in CLASS_OF.items()
    ]
    with staged(classes, policy__name="priority", scheduler__watchdog=1, kube__lease_duration=3) as place:
        place.nodes(4, cpu="4")
        for name, count in COUNTS.items():
            cls, annotations = OWN.get(name, (name, {}))
            place.create("deployments", deployment(name, count, cpu="1", **brief(cls, **annotations)))
        place.ready(count=sum(COUNTS.values()))
        golden: list[str] = []
        for _ in range(KILLS):
            come_and_go(place, 25.0, golden)
            place.kill()
        come_and_go(place, 25.0, golden)
        told = place.explained(place.names("often")[0])
        assert any("at most 2 in 20s are allowed" in line for line in told.get("limits", ())), told
        for name in golden:
            place.delete("pods", name)
        for name, count in COUNTS.items():
            place.ready(name, count)
        lives = {name: place.lives(f"{name}-") for name in COUNTS}
        times = {name: sorted(one.evicted for one in those if one.evicted is not None) for name, those in lives.items()}
    assert not times["never"]
    assert min(len(times[name]) for name in COUNTS if name != "never") >= KILLS / 2, times
    for name, (most, per) in {"often": (2, PER), "own": (1, 40.0)}.items():
        assert not too_many(times[name], most, per), (name, times[name])
    assert too_many(times["free"], 2, PER), "without limits there are more"
    wrong = {one.name: why for one in lives["calm"] if one.evicted and (why := too_soon(one, lives["calm"], 3))}
    assert not wrong, (wrong, times["calm"])
