"""The smallest host set on which a workload gets what it was promised, under each of several policies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from slacktide import settings
from slacktide.config import Config
from slacktide.errors import RunsError
from slacktide.experiment import conduct, keys
from slacktide.experiment.conduct import Executor, Listed, Watcher
from slacktide.experiment.falling import Falling
from slacktide.experiment.goals import Goal, Score, check_attainable, score
from slacktide.experiment.grid import (
    First,
    FromFile,
    Generated,
    Grid,
    Point,
    PolicyEntry,
    WorkloadEntry,
    absolute,
    check_names,
)
from slacktide.experiment.prepare import HOSTS, Inputs, classes_of, first, load_workload
from slacktide.experiment.store import Store
from slacktide.inputs import align, read_host_events, read_hosts
from slacktide.inputs.formats.network_file import read_network
from slacktide.model import Hosts, Workload
from slacktide.results import experiment as folder
from slacktide.sim.engine import check_end
from slacktide.sim.startup import batch_returns, delays


@dataclass(frozen=True, slots=True)
class Bracket:
    """What tested sizes say. The answer is ``meets``: from it on every tested size does.

    fails  the largest tested size that does not do; 0: none
    meets  the smallest tested size above it; None: none
    """

    fails: int
    meets: int | None


def bracket(tested: Mapping[int, bool]) -> Bracket:
    """The bracket of ``tested``: whether each size does."""
    fails = max((size for size, does in tested.items() if not does), default=0)
    return Bracket(fails, min((size for size, does in tested.items() if does and size > fails), default=None))


def next_sizes(
    tested: Mapping[int, bool], *, start: int, most: int, at_once: int = 1, within: int = 1, beside: int = 2
) -> list[int]:
    """Up to ``at_once`` sizes to be tested next; none when the search is over.

    It begins at ``start`` and its half, doubles up to ``most`` until a size does, and then cuts what lies between the
    largest size that does not do and the smallest above it that does into ``at_once + 1`` parts (bisection, where it
    is one), until they are ``within`` of one another. As doing is not certain to be monotone, ``beside`` sizes above
    the answer and the one below the bracket are tested then; one above that does not do begins the cutting anew.
    """
    if not tested:
        return sorted({start, *([max(start // 2, 1)] if at_once > 1 else [])})
    found = bracket(tested)
    if found.meets is None:
        larger = (min(found.fails << step, most) for step in range(1, at_once + 1))
        return sorted({size for size in larger if size > found.fails})
    gap = found.meets - found.fails
    if gap > within:
        parts = min(at_once, gap - 1) + 1
        return sorted({found.fails + gap * part // parts for part in range(1, parts)})
    around = [found.fails - 1, *range(found.meets + 1, min(found.meets + beside, most) + 1)]
    return sorted(size for size in around if size > 0 and size not in tested)[:at_once]


FORMAT, VERSION = "slacktide-plan", 1
CURVE = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.1)
"""Parts of the answer that are tested for the curve; one that meets or misses the goal against it counts, too."""
WORKLOAD, MIX = "workload", "mix"
"""Names of the workload and of the given hosts in the grid of a plan."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be planned.

    grid     one workload called WORKLOAD, one host set called MIX, policies by name, seeds
    goal     what every seed has to achieve
    at_once  sizes tested at a time for each policy
    within   hosts by which the answer may be too large
    most     the largest size tested, hosts
    curve    whether sizes around the answer are tested as well, for the drawing
    """

    grid: Grid
    goal: Goal
    command: Sequence[str]
    at_once: int = 1
    within: int = 1
    most: int | None = None
    curve: bool = True

    @property
    def windows(self) -> dict[str, str]:
        """Of classes that promise over windows, which these are; their requests are judged by the worst one."""
        config = next(iter(self.grid.policies.values())).config
        return {one.name: one.window.name for one in config.classes if one.window is not None}


@dataclass(slots=True)
class Answer:
    """What was found for a policy: ``scores`` by size, one for each seed; whether each size does."""

    policy: str
    scores: dict[int, list[Score]] = field(default_factory=dict)
    does: dict[int, bool] = field(default_factory=dict)

    @property
    def bracket(self) -> Bracket:
        return bracket(self.does)

    @property
    def exceptions(self) -> list[int]:
        """Sizes below the bracket that do, although a larger one does not."""
        return sorted(size for size, does in self.does.items() if does and size < self.bracket.fails)


@dataclass(frozen=True, slots=True)
class Plan:
    """Answers for each policy, and the mix they are about."""

    question: Question
    answers: list[Answer]
    mix: Hosts
    most: int
    before: tuple[str, ...] = ()

    def hosts(self, size: int) -> Hosts:
        """Those of a size."""
        return first(self.mix, size, self.before)


Given = FromFile | Generated
"""What a plan's workload and hosts come from."""


def grid_of(
    workload: Given, hosts: Given, policies: Mapping[str, PolicyEntry], seeds: int, grouping: Mapping[str, str] | None
) -> Grid:
    """The grid that a plan's runs are of; sizes are added as they are tested. End and seed are the first policy's."""
    first = next(iter(policies.values())).config.simulation
    return Grid(
        workloads={WORKLOAD: WorkloadEntry(workload, grouping)},
        hosts={MIX: hosts},
        policies=policies,
        seeds=seeds,
        base_seed=first.seed,
        end=first.end,
    )


def policies_of(
    names: Sequence[str] | Mapping[str, str], load: Callable[[str, str | None], Config], where: str = "--policy "
) -> dict[str, PolicyEntry]:
    """Entries by name, a policy's or a preset's; ``load`` makes the settings of a preset and, where one is named, a
    policy. A mapping says what each shall be called.

    Raises :class:`ConfigError`, beginning with ``where``, for a name that nobody offers.
    """
    found = {}
    for called, name in names.items() if isinstance(names, Mapping) else zip(names, names, strict=True):
        preset = name if name in settings.PRESETS else "recommended"
        config = absolute(load(preset, None if name in settings.PRESETS else name))
        check_names(config, f"{where}{name}")
        found[called] = PolicyEntry(preset, config)
    return found


def name_of(size: int) -> str:
    """A host set's name in the grid of a plan."""
    return f"{size} hosts"


def plan(question: Question, store: Store, executor: Executor, watcher: Watcher) -> Plan:
    """Search for every policy at once; runs are kept in ``store`` and never done twice.

    Raises ConfigError for a goal that no number of hosts achieves, InputError, OutputError, and
    :class:`RunsError` where a run fails.
    """
    inputs = Inputs(question.grid, store.inputs, watcher.announce)
    mix = read_hosts(inputs.hosts(MIX) / HOSTS)
    for policy in question.grid.policies:
        _check(question, inputs, policy, mix)
    falling = Falling.of(question.grid, mix)
    most = question.most or 8 * len(mix)
    start = min(len(mix), most)
    answers = [Answer(policy) for policy in question.grid.policies]
    done: list[Listed] = []
    while True:
        wanted = [(answer, size) for answer in answers for size in _next(question, answer, start, most)]
        if not wanted:
            break
        watcher.expect([one for answer in answers for one in _likely(question, answer, start, most)])
        sizes = {size for answer in answers for size in (*answer.does,)} | {size for _, size in wanted}
        grid = _with_sizes(question.grid, sizes, mix, falling, store)
        runs = {(answer.policy, size): _listed(grid, answer.policy, size) for answer, size in wanted}
        done += [one for some in runs.values() for one in some]
        conduct.describe(store, grid, done, question.command, None)
        failures = conduct.conduct(grid, [one for some in runs.values() for one in some], store, executor, watcher)
        if failures:
            point, outcome = failures[0]
            raise RunsError(
                f"{len(failures)} runs of the plan failed, so that it has no answer; the first, with {point.hosts} "
                f"under {point.policy}, seed {point.seed}: {outcome.error}"
            )
        for answer, size in wanted:
            answer.scores[size] = [_score(store, one) for one in runs[answer.policy, size]]
            answer.does[size] = question.goal.met_by(answer.scores[size])
    return Plan(question, answers, mix, most, falling.names)


def _next(question: Question, answer: Answer, start: int, most: int) -> list[int]:
    """Sizes to be tested next: those that find the answer, then those that show the curve around it."""
    found = next_sizes(answer.does, start=start, most=most, at_once=question.at_once, within=question.within)
    meets = answer.bracket.meets
    if found or meets is None or not question.curve:
        return found
    around = {min(max(round(meets * part), 1), most) for part in CURVE}
    return sorted(around - set(answer.does))


def _likely(question: Question, answer: Answer, start: int, most: int) -> list[Point]:
    """Runs after the next ones, if the answer is in the middle of where it may be; ``start`` where nothing is known."""
    found = answer.bracket
    meets = found.meets if found.meets is not None else 2 * found.fails
    guess = min((found.fails + meets + 1) // 2 or start, most)
    sizes: list[int] = []
    played = Answer(answer.policy, does=dict(answer.does))
    now = following = _next(question, played, start, most)
    while following:
        sizes += following
        played.does |= {size: size >= guess for size in following}
        following = _next(question, played, start, most)
    return [point for size in sizes[len(now) :] for point in _points(question.grid, answer.policy, size)]


def _check(question: Question, inputs: Inputs, policy: str, mix: Hosts) -> None:
    config = question.grid.policies[policy].config
    prepared = inputs.workload(WORKLOAD)
    entry = question.grid.workloads[WORKLOAD]
    workload = load_workload(prepared, classes_of(prepared, config.classes), entry.grouping)
    requests, hosts = align(workload, mix)
    _check_settings(config, requests, hosts)
    check_attainable(question.goal, requests, hosts, question.grid.end)


def _check_settings(config: Config, requests: Workload, hosts: Hosts) -> None:
    """Raises :class:`ConfigError` or :class:`InputError` at once for what a run would refuse, or a plan cannot do."""
    check_end(requests, config)
    for name, times in (("hot", config.startup.hot), ("cold", config.startup.cold)):
        delays(times, f"startup.{name}")
    delays(config.simulation.grace, "simulation.grace")
    batch_returns(config.simulation.batch_recreation)
    if config.delay.network is not None:
        read_network(config.delay.network, hosts)
    if config.failures.file is not None:
        read_host_events(config.failures.file, hosts)


def _with_sizes(grid: Grid, sizes: set[int], mix: Hosts, falling: Falling, store: Store) -> Grid:
    sets: dict[str, Any] = {name_of(size): First(MIX, size, falling.names) for size in sorted(sizes)}
    events: dict[tuple[str, str], str] = {}
    for size in sorted(sizes) if falling.files else ():
        events |= falling.written(name_of(size), first(mix, size, falling.names), store)
    return replace(grid, hosts={MIX: grid.hosts[MIX], **sets}, events=events)


def _points(grid: Grid, policy: str, size: int) -> list[Point]:
    return [Point(WORKLOAD, name_of(size), policy, seed) for seed in grid.seeds_of(WORKLOAD)]


def _listed(grid: Grid, policy: str, size: int) -> list[Listed]:
    points = _points(grid, policy, size)
    return [Listed(key, point) for key, point in zip(keys.run_keys(grid, points), points, strict=True)]


def _score(store: Store, one: Listed) -> Score:
    at = one.point
    where = store.folder / folder.RUNS / one.key
    return score(folder.Run(one.key, at.workload, at.hosts, at.policy, at.seed, where, None))


def rows(found: Plan) -> dict[str, list[Any]]:
    """The curve, a row per policy, size and class (and ``all``), in this order, as columns.

    ``policy``, ``hosts`` (number), ``scale`` (of the mix), ``capacity_<resource>``, ``class``, ``window`` (of its
    promise, null: none), ``target`` (null where there is none), ``fulfilment`` (the least of the seeds),
    ``fulfilment_mean``, ``penalty`` (cpu-seconds, the most of the seeds; of all classes, in row ``all`` only),
    ``penalty_mean``, ``meets`` (whether this size does).
    """
    goal, count = found.question.goal, len(found.mix)
    lines: list[dict[str, Any]] = []
    for answer in found.answers:
        for size, scores in sorted(answer.scores.items()):
            capacity = found.hosts(size).capacity.sum(axis=0).tolist()
            about = {"policy": answer.policy, "hosts": size, "scale": size / count}
            about |= {f"capacity_{name}": one for name, one in zip(found.mix.resources, capacity, strict=True)}
            for name in scores[0].fulfilment:
                shares = [one.fulfilment[name] for one in scores]
                target = None if goal.budget is not None else goal.targets.get(name)
                known = not math.isnan(shares[0])
                lines.append(
                    {
                        **about,
                        "class": name,
                        "window": found.question.windows.get(name),
                        "target": target,
                        "fulfilment": min(shares) if known else None,
                        "fulfilment_mean": sum(shares) / len(shares) if known else None,
                        "penalty": None,
                        "penalty_mean": None,
                        "meets": answer.does[size],
                    }
                )
            owed = [one.penalty for one in scores]
            lines.append(
                {
                    **about,
                    "class": "all",
                    "window": None,
                    "target": goal.budget,
                    "fulfilment": None,
                    "fulfilment_mean": None,
                    "penalty": max(owed),
                    "penalty_mean": sum(owed) / len(owed),
                    "meets": answer.does[size],
                }
            )
    return {name: [line[name] for line in lines] for name in lines[0]}


def summary(found: Plan) -> dict[str, Any]:
    """plan.json: the goal, and of each policy the answer, its bracket and the sizes that were tested."""
    goal = found.question.goal
    return {
        "format": FORMAT,
        "schema_version": VERSION,
        "command": list(found.question.command),
        "goal": {"targets": None if goal.budget is not None else dict(goal.targets), "penalty": goal.budget},
        "windows": found.question.windows,
        "seeds": list(found.question.grid.seeds_of(WORKLOAD)),
        "mix": len(found.mix),
        "meaning": "hosts is the smallest tested number from which on every tested number of hosts meets the goal with "
        "every seed; fails is the largest tested number that does not (0: none)",
        "policies": {one.policy: _answer(found, one) for one in found.answers},
    }


def _answer(found: Plan, answer: Answer) -> Mapping[str, Any]:
    hosts = answer.bracket.meets
    capacity = None if hosts is None else found.hosts(hosts).capacity.sum(axis=0).tolist()
    return {
        "hosts": hosts,
        "scale": None if hosts is None else hosts / len(found.mix),
        "capacity": None if capacity is None else dict(zip(found.mix.resources, capacity, strict=True)),
        "fails": answer.bracket.fails,
        "exceptions": answer.exceptions,
        "tested": sorted(answer.does),
        "most": found.most,
    }
