"""The verdict in three sentences: what was kept, what is owed, what it cost; chosen from the data by the rules below.

1. Compared are the places (workload, host set, replicate) that every policy has finished, and no others.
2. Of the policies beside the reference those come first that kept no class worse than it did; of these, or of all where
   there are none, the one with the least penalty is judged; between equals the one that kept more promises, then the
   one with fewer preemptions, then the first in the grid.
3. It does *better* when no class has a lower share of promises kept and the penalty is not higher, and at least one of
   these is better; *worse* likewise; *no different* when nothing differs; otherwise *better in some respects and worse
   in others*. Shares differ from 0.05 percentage points on, penalties from 1 % on.
4. Host sets and classes in which it kept fewer promises than the reference are named, the worst three first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slacktide.for_people import counted, percent
from slacktide.reporting.figure import Rows, Scene, where

SHARE_DIFFERS = 0.0005
PENALTY_DIFFERS = 0.01
NAMED_LOSSES = 3
NAMED_OTHERS = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """Three sentences (fewer where there is nothing to compare), on what they stand, and the policy that is judged."""

    sentences: tuple[str, ...]
    basis: str
    judged: str | None = None


def verdict(scores: Rows, scene: Scene) -> Verdict:
    """What came of it.

    ``scores``: a row per finished run and class: workload, hosts, policy, replicate, class, requests, kept, penalty
    (cpu-seconds), preemptions, operations (of the whole run, the same in all its rows).
    """
    policies = [one for one in scene.policies if where(scores, policy=one)]
    rows, places = compared(scores, policies)
    if not places:
        text = (
            "Nothing can be compared yet: no workload, host set and seed was finished under every policy. "
            "What is finished is shown below."
        )
        return Verdict((text,), f"{len(_runs(scores))} finished runs.")
    basis = f"Over {counted(len(places), 'run')} of each policy ({_grid(places)}), on equal workloads, hosts and seeds."
    if len(policies) == 1 or scene.reference not in policies:
        return Verdict(_alone(rows, policies, scene), basis + " " + _why_alone(policies, scene))
    best = _judged(rows, [one for one in policies if one != scene.reference], scene)
    sentences = (_kept(rows, best, scene), _owed(rows, best, policies, scene), _price(rows, best, scene))
    return Verdict(sentences, basis, best)


def compared(scores: Rows, policies: Iterable[str]) -> tuple[Rows, list[tuple[str, str, int]]]:
    """The rows of places that all ``policies`` have finished, and these places."""
    had: dict[tuple[str, str, int], set[str]] = {}
    for row in scores:
        had.setdefault((row["workload"], row["hosts"], row["replicate"]), set()).add(row["policy"])
    whole = [place for place, those in had.items() if those >= set(policies)]
    kept = set(whole)
    return [row for row in scores if (row["workload"], row["hosts"], row["replicate"]) in kept], whole


def share_kept(rows: Rows) -> float | None:
    """Of all requests of ``rows`` the share whose promise was kept; None of nothing."""
    requests = sum(row["requests"] for row in rows)
    return sum(row["kept"] for row in rows) / requests if requests else None


def _runs(rows: Rows) -> Rows:
    """One row for each run."""
    seen = {(row["workload"], row["hosts"], row["policy"], row["replicate"]): row for row in rows}
    return list(seen.values())


def _penalty(rows: Rows, **wanted: object) -> float:
    return float(sum(row["penalty"] for row in where(rows, **wanted)))


def _mean(rows: Rows, column: str) -> float:
    runs = _runs(rows)
    if column == "preemptions":
        return float(sum(row[column] for row in rows)) / len(runs)
    return float(sum(row[column] for row in runs)) / len(runs)


def _judged(rows: Rows, others: list[str], scene: Scene) -> str:
    def rank(policy: str) -> tuple[bool, float, float, float, int]:
        mine = where(rows, policy=policy)
        kept = share_kept(mine) or 0.0
        at_a_loss = any(less >= SHARE_DIFFERS for less in _less_kept(rows, policy, scene))
        return at_a_loss, _penalty(mine), -kept, _mean(mine, "preemptions"), scene.policies.index(policy)

    return min(others, key=rank)


def _less_kept(rows: Rows, policy: str, scene: Scene) -> list[float]:
    """By class how much larger the reference's share of kept promises is; below 0 where it is smaller."""
    found = []
    for name in scene.classes:
        mine, theirs = (share_kept(where(rows, policy=one, **{"class": name})) for one in (policy, scene.reference))
        if mine is not None and theirs is not None:
            found.append(theirs - mine)
    return found


def _kept(rows: Rows, best: str, scene: Scene) -> str:
    word = _word(rows, best, scene)
    parts = []
    for name in scene.classes:
        mine, theirs = (share_kept(where(rows, policy=one, **{"class": name})) for one in (best, scene.reference))
        if mine is not None and theirs is not None:
            parts.append(f"{percent(mine)} of {name} (under {scene.reference} {percent(theirs)})")
    text = f"{best} {word} than {scene.reference} here" if "than" not in word else f"{best} {word}"
    text = text.replace("no different than", "no different from")
    text += f": of the promises{_over(rows)} it kept {_listed(parts)}"
    losses = _losses(rows, best, scene)
    if losses:
        text += f"; {'but ' if word == 'does better' else ''}it kept fewer in {_listed(losses)}"
    return text + "."


def _over(rows: Rows) -> str:
    """Says that shares are of all host sets together, where the tiles have each host set's own."""
    return " over all host sets" if len({row["hosts"] for row in rows}) > 1 else ""


def _word(rows: Rows, best: str, scene: Scene) -> str:
    less = _less_kept(rows, best, scene)
    ups, downs = sum(-one >= SHARE_DIFFERS for one in less), sum(one >= SHARE_DIFFERS for one in less)
    mine, theirs = _penalty(rows, policy=best), _penalty(rows, policy=scene.reference)
    if abs(mine - theirs) > PENALTY_DIFFERS * max(mine, theirs):
        ups, downs = ups + (mine < theirs), downs + (mine > theirs)
    if ups and downs:
        return f"does better than {scene.reference} in some respects and worse in others"
    return "does better" if ups else "does worse" if downs else "does no different"


def _losses(rows: Rows, best: str, scene: Scene) -> list[str]:
    found = []
    for hosts in scene.hosts:
        for name in scene.classes:
            here = {"hosts": hosts, "class": name}
            mine, theirs = (share_kept(where(rows, policy=one, **here)) for one in (best, scene.reference))
            if mine is not None and theirs is not None and theirs - mine >= SHARE_DIFFERS:
                text = f"{name} on {hosts} ({percent(mine)} instead of {percent(theirs)})"
                found.append((mine - theirs, text))
    found.sort(key=lambda one: one[0])
    named = [text for _, text in found[:NAMED_LOSSES]]
    return [*named, f"{len(found) - NAMED_LOSSES} more"] if len(found) > NAMED_LOSSES else named


def _owed(rows: Rows, best: str, policies: list[str], scene: Scene) -> str:
    sums = {one: _penalty(rows, policy=one) for one in policies}
    mine, theirs = sums[best], sums[scene.reference]
    if max(sums.values()) == 0.0:
        return "No policy owes a penalty."
    text = f"Penalties sum up to {amount(mine)} cpu-seconds under {best} and {amount(theirs)} under {scene.reference}"
    text += f" ({_change(mine, theirs)})"
    rest = [one for one in sums if one not in (best, scene.reference)]
    if len(rest) > NAMED_OTHERS:
        owed = [sums[one] for one in rest]
        text += f", {amount(min(owed))} to {amount(max(owed))} under the other {len(rest)}"
    elif rest:
        text += f", {_listed([f'{amount(sums[one])} under {one}' for one in rest])}"
    by_hosts = [
        f"{amount(_penalty(rows, policy=best, hosts=hosts))} against "
        f"{amount(_penalty(rows, policy=scene.reference, hosts=hosts))} on {hosts}"
        for hosts in scene.hosts
        if where(rows, hosts=hosts)
    ]
    if 1 < len(by_hosts) <= 6:
        text += f"; by host set: {_listed(by_hosts)}"
    return text + "."


def _price(rows: Rows, best: str, scene: Scene) -> str:
    mine, theirs = where(rows, policy=best), where(rows, policy=scene.reference)
    moved = [_mean(one, "preemptions") for one in (mine, theirs)]
    work = [_mean(one, "operations") for one in (mine, theirs)]
    if moved[0] > moved[1]:
        times = f", {moved[0] / moved[1]:.1f} times as many" if moved[1] >= 1.0 else ""
        text = f"The price is preemptions: {amount(moved[0])} a run under {best} against {amount(moved[1])}{times}"
    elif moved[0] == moved[1]:
        text = f"Both preempt equally often, {amount(moved[0])} times a run"
    else:
        text = f"{best} also preempts less: {amount(moved[0])} times a run against {amount(moved[1])}"
    return f"{text}; it takes {amount(work[0])} operations a run against {amount(work[1])}."


def _alone(rows: Rows, policies: list[str], scene: Scene) -> tuple[str, ...]:
    """What each policy did, where there is nothing to hold it against."""
    kept, owed, moved = [], [], []
    for policy in policies:
        mine = where(rows, policy=policy)
        parts = [(share_kept(where(mine, **{"class": name})), name) for name in scene.classes]
        text = _listed([f"{percent(share)} of {name}" for share, name in parts if share is not None])
        kept.append(f"{policy} kept {text} promises{_over(rows)}")
        owed.append(f"{amount(_penalty(mine))} cpu-seconds under {policy}")
        moved.append(f"{amount(_mean(mine, 'preemptions'))} under {policy}")
    return (
        f"{_listed(kept)}.",
        f"Penalties sum up to {_listed(owed)}.",
        f"Preemptions a run: {_listed(moved)}.",
    )


def _why_alone(policies: list[str], scene: Scene) -> str:
    if len(policies) == 1:
        return f"Only {policies[0]} has finished runs, so that nothing is compared."
    return f"The reference {scene.reference} has no finished run."


def _grid(places: list[tuple[str, str, int]]) -> str:
    workloads, hosts, seeds = (len({place[index] for place in places}) for index in range(3))
    return f"{counted(workloads, 'workload')}, {counted(hosts, 'host set')}, {counted(seeds, 'seed')}"


def _change(mine: float, theirs: float) -> str:
    if theirs == 0.0:
        return "equal" if mine == 0.0 else "the reference owes none"
    share = mine / theirs - 1.0
    return f"{abs(share):.1%} {'less' if share < 0 else 'more'}".replace("%", " %") if abs(share) >= 0.0005 else "equal"


def amount(value: float) -> str:
    """A number in a sentence: ``219,282``, ``12.3``, ``1.31 million``."""
    if value >= 1e6:
        return f"{value / 1e6:,.2f} million"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "nothing"
