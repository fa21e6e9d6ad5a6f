"""``python tests/simulated/mutants.py [WORD...]``: breaks one rule of the live path at a time in a copy of the tree,
and plays seeds until one finds that something is wrong, for a minute of processor time at most.

Words choose mutants, as in ``tests/mutation.py``, by rule or file. Exit code 1 where a mutant survives.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60
"""Of processor time for each."""
BINDER, EVICTION, ACTOR = "kube/act/binder.py", "kube/act/eviction.py", "kube/act/actor.py"
PLACES, LEASE, REFLECTOR = "kube/act/reservations.py", "kube/leader_election.py", "kube/client/reflector.py"


class Mutant(NamedTuple):
    """In ``file`` (below src/slacktide) ``text``, which stands there once, becomes ``instead``; seeds are played from
    ``first`` on, which is near one that brings what is rare."""

    rule: str
    file: str
    text: str
    instead: str
    first: int = 1


MUTANTS = (
    Mutant(
        "a binding names the pod's UID",
        "kube/resources/bodies.py",
        '"metadata":{"namespace":%b,"name":%b,"uid":%b},',
        '"metadata":{"namespace":%b,"name":%b,"x":%b},',
    ),
    Mutant(
        "an eviction names the pod's UID",
        "kube/resources/bodies.py",
        'options: dict[str, Any] = {"preconditions": {"uid": uid}}',
        'options: dict[str, Any] = {"preconditions": {}}',
    ),
    Mutant(
        "who leads knows until when",
        LEASE,
        "let go of what only a leader may do\n        self._deadline = began + self._renew",
        "let go of what only a leader may do\n        self._deadline = began + 3 * self._renew",
    ),
    Mutant("others wait for the lease to run out", LEASE, ">= theirs", ">= 1.0"),
    Mutant("a lease that somebody holds is not free", LEASE, "        elif self._free():", "        else:"),
    Mutant(
        "the lease is looked at before a binding is sent",
        BINDER,
        "self._connection.post(path, body, permit=self._leading)",
        "self._connection.post(path, body)",
    ),
    Mutant(
        "it is looked at before a condition is written",
        "kube/publish/conditions.py",
        "body, STRATEGIC_MERGE_PATCH, permit=self._leading)",
        "body, STRATEGIC_MERGE_PATCH)",
        first=50,
    ),
    Mutant(
        "it is looked at before a nomination is written",
        "kube/act/nomination_writer.py",
        "body, STRATEGIC_MERGE_PATCH, permit=self._leading)",
        "body, STRATEGIC_MERGE_PATCH)",
    ),
    Mutant(
        "it is looked at once more when the first byte is written",
        "kube/client/payload.py",
        "if not self._permit():",
        "if self._permit is None:",
    ),
    Mutant(
        "a new leader knows the last one's bindings",
        "kube/scheduler.py",
        "                await self.watches.up_to_date()\n",
        "",
    ),
    Mutant(
        "after 410 all is listed anew",
        REFLECTOR,
        'self._must_list, self.resource_version = True, ""\n                wait',
        "wait_again = True\n                wait",
        first=35,
    ),
    Mutant(
        "what a list has no more is gone",
        REFLECTOR,
        "                del self._known[key]\n                self._handler.deleted(identity, None)\n"
        "                await",
        "                await",
        first=43,
    ),
    Mutant(
        "a watch goes on where it ended",
        REFLECTOR,
        '"resourceVersion": self.resource_version,',
        '"resourceVersion": "",',
    ),
    Mutant(
        "victims of later decisions of a pass are still there",
        ACTOR,
        "                self.reservations.goes(victim.uid, self.feed.engine.pods[victim.uid].host)\n",
        "                pass\n",
    ),
    Mutant(
        "a place waits for those who are in its way",
        ACTOR,
        "self.reservations.in_the_way(self.feed.engine, decision).union(uids)",
        "set(uids)",
    ),
    Mutant("a place waits for its victims", ACTOR, "        if not outstanding:\n", "        if True:\n"),
    Mutant("a former leader's victims are waited for", ACTOR, "        if not leaving:\n", "        if True:\n"),
    Mutant(
        "whoever went at once is in the way",
        PLACES,
        "if node.going and not _has_room(",
        "if False and not _has_room(",
        first=40,
    ),
    Mutant(
        "where a victim stays, who lived on its room gives way",
        PLACES,
        "            if all(room.get(name, 0) >= 0 for name, amount in demand if amount):\n                return\n",
        "            if room is not None:\n                return\n",
        first=3049,
    ),
    Mutant(
        "a place is free at once where there is room only",
        "kube/act/second_look.py",
        "    return not reservations.in_the_way(engine, Decision(decision.uid, decision.host, decision.metric))",
        "    return True",
    ),
    Mutant(
        "a place that could not be bound is forgotten",
        ACTOR,
        "        engine.refused(uid, self.clock())\n        pod.failures += 1",
        "        pod.failures += 1",
    ),
    Mutant(
        "who was given up is tried again",
        ACTOR,
        "            self.feed.active(pod)\n            self.feed.consider(pod)",
        "            pass",
        first=29,
    ),
    Mutant(
        "a binding without an answer is looked up",
        BINDER,
        "        except Unreachable as error:\n            await self._look_up(pod, decision, str(error))\n"
        "            return\n        self._has",
        "        except Unreachable:\n            pass\n        self._has",
    ),
    Mutant(
        "a binding that was not carried out is given up",
        BINDER,
        "            else:\n                self._give_up(decision.uid, problem, at_once=True)\n            return",
        "            return",
    ),
    Mutant(
        "a binding for which there was no time is sent again",
        BINDER,
        "                self._again(decision, error.retry_after)\n",
        "                return\n",
        first=20,
    ),
    Mutant(
        "a ledger is written before an eviction",
        EVICTION,
        "if await self.listener.before_eviction(victim.key):",
        "if True:",
    ),
    Mutant(
        "a victim is evicted for a place that is still kept",
        EVICTION,
        "nomination is not None and nomination.decision is decision and self.leading()",
        "self.leading()",
    ),
    Mutant(
        "a victim that is not evicted stays in the books",
        EVICTION,
        "            engine.spared(victim.uid, self.feed.clock())\n",
        "",
    ),
    Mutant(
        "a pod that is told of meanwhile is not told of twice",
        "kube/feed/feed.py",
        "            if pod.key:\n                return  # it was held",
        "            if not pod:\n                return  # it was held",
        first=180,
    ),
    Mutant(
        "a ledger is written once a minute",
        "kube/publish/write_plan.py",
        "now - oldest >= REFRESH_SECONDS",
        "now - oldest >= 60 * REFRESH_SECONDS",
    ),
    Mutant(
        "a new leader reads the ledgers of the last one",
        "kube/scheduler.py",
        "session = self.lead(journal, await self._load())",
        "session = self.lead(journal, {})",
    ),
)  # fmt: skip


def mutated(mutant: Mutant, folder: Path) -> str:
    """The file with its rule broken. Ends the program where the text is not there, or more than once."""
    text = (folder / "src" / "slacktide" / mutant.file).read_text(encoding="utf-8")
    if (times := text.count(mutant.text)) != 1:
        raise SystemExit(f"{mutant.rule}: {mutant.file} has this {times} times, expected once:\n{mutant.text}")
    return text.replace(mutant.text, mutant.instead)


def tried(mutant: Mutant | None) -> str:
    """What a seed says of it, the first line; empty where none finds it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("src", "tests/simulated", "examples"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            (copy / "src" / "slacktide" / mutant.file).write_text(mutated(mutant, ROOT), encoding="utf-8")
        words = [sys.executable, "tests/simulated/soak.py", "--processes=1", "--until-found", "--cut=0"]
        words.append(f"--first={1 if mutant is None else mutant.first}")
        environment = os.environ | {"PYTHONPATH": "src:tests", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            words, cwd=copy, env=environment, capture_output=True, text=True, check=False, preexec_fn=_limited
        )
    if done.returncode not in (1, -24) or "Traceback" in done.stderr:
        return f"the program ended with {done.returncode}: {done.stderr[-300:]}"
    return " ".join(done.stdout.splitlines()[:2]) if done.returncode == 1 else ""


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))


def main(words: list[str]) -> int:
    """Try them; 1 where one survives."""
    chosen = [one for one in MUTANTS if not words or any(word in one.rule or word in one.file for word in words)]
    for one in chosen:
        mutated(one, ROOT)  # before any of them takes time
    survive = 0
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        under_way = {workers.submit(tried, one): one for one in chosen}
        for done in as_completed(under_way):
            one, found = under_way[done], done.result()
            survive += not found
            said = re.sub(r"\s+", " ", found)[:160] or "SURVIVES"
            sys.stdout.write(f"| {one.rule} | `{one.file}` | {said} |\n")
            sys.stdout.flush()
    return 1 if survive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
