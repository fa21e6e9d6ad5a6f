"""What is told beside a finding of the auditor: all that it saw of the pods that the finding names, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from cluster.auditor import Auditor, Seen
from cluster.judging import Json, is_over, is_ready, seconds
from cluster.replaying import target

POD = re.compile(r"\b([a-z0-9][a-z0-9.-]*)/([a-z0-9][a-z0-9.-]*[a-z0-9])\b")
AROUND_SECONDS = 30.0
"""Who came to a victim's node, or left it, so long before or after its eviction is told of, too."""
WATCH, TOGETHER_SECONDS = "reflector: watch of ", 0.5
Line = tuple[float, str]


def clock(at: float) -> str:
    """An instant as the time of day, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]


def stories(auditor: Auditor, findings: Iterable[str], beside: Iterable[Line] = ()) -> str:
    """Each finding with what was seen of its pods; ``beside``: what else happened, and when."""
    beside = list(beside)
    return "\n".join(f"{finding}\n{_story(auditor, finding, beside)}" for finding in findings)


def _story(auditor: Auditor, finding: str, beside: list[Line]) -> str:
    named = set(POD.findall(finding))
    uids = {
        one.body["metadata"]["uid"]
        for one in auditor.tape("pods")
        if (one.body["metadata"]["namespace"], one.body["metadata"]["name"]) in named
    }
    events = list(_events(auditor, uids))
    uids |= {one.body["related"]["uid"] for one in events if one.body.get("related", {}).get("uid")}
    acts = [act for act in auditor.acts() if target(act) in uids]
    lines = [(one.at, _of_event(one)) for one in _events(auditor, uids)]
    lines += [(seconds(act["stageTimestamp"]), _of_act(act)) for act in acts]
    lines += _versions(auditor, uids)
    lines += _others(auditor, uids, [seconds(act["stageTimestamp"]) for act in acts])
    if lines:
        least, most = min(at for at, _ in lines) - AROUND_SECONDS, max(at for at, _ in lines) + AROUND_SECONDS
        lines += [(at, text) for at, text in beside if least <= at <= most]
    else:
        lines = beside
    return "\n".join(f"  {clock(at)} {text}" for at, text in _without_repeats(sorted(lines)))


def _without_repeats(lines: Iterable[Line]) -> Iterator[Line]:
    """When all watches break at once, the first of them tells of it."""
    since = float("-inf")
    for at, text in lines:
        if WATCH not in text or at - since > TOGETHER_SECONDS:
            yield at, text
        since = at if WATCH in text else since


def _events(auditor: Auditor, uids: set[str]) -> Iterator[Seen]:
    return (one for one in auditor.tape("events") if one.body.get("regarding", {}).get("uid") in uids)


def _of_event(one: Seen) -> str:
    body = one.body
    about = body["regarding"]
    by = body.get("reportingInstance") or body.get("reportingController", "")
    times = body.get("deprecatedCount", 1)
    name = f"{about.get('namespace')}/{about['name']}"
    return f"event {body['reason']} of {name} by {by}, {times} times: {body.get('note', '')}"


def _of_act(act: Json) -> str:
    what, to = act["objectRef"], (act.get("requestObject") or {}).get("target", {}).get("name", "")
    began = clock(seconds(act["requestReceivedTimestamp"])) if "requestReceivedTimestamp" in act else "?"
    where = f" to {to}" if to else ""
    return (
        f"{act['verb']} of {what.get('subresource') or what['resource']} of {what.get('namespace')}/{what.get('name')}"
        f"{where}: {act['responseStatus']['code']}, asked for at {began}"
    )


def _state(one: Seen) -> str:
    pod = one.body
    words = [pod["status"].get("phase", "?"), f"on {pod['spec'].get('nodeName') or 'no node'}"]
    words += [f"nominated to {pod['status']['nominatedNodeName']}"] if pod["status"].get("nominatedNodeName") else []
    words += ["ready"] if is_ready(pod) else []
    words += ["leaves"] if "deletionTimestamp" in pod["metadata"] else []
    words += ["is gone"] if one.gone else []
    return " ".join(words)


def _versions(auditor: Auditor, uids: set[str]) -> Iterator[Line]:
    for one in auditor.tape("pods"):
        meta = one.body["metadata"]
        if meta["uid"] in uids:
            yield one.at, f"pod {meta['namespace']}/{meta['name']} at revision {one.revision}: {_state(one)}"


def _others(auditor: Auditor, uids: set[str], moments: list[float]) -> Iterator[Line]:
    """Who came to, or left, the nodes on which those pods were."""
    tape = auditor.tape("pods")
    nodes = {one.body["spec"].get("nodeName") for one in tape if one.body["metadata"]["uid"] in uids} - {None}
    there, ended = set[str](), set[str]()
    for one in tape:
        meta, node = one.body["metadata"], one.body["spec"].get("nodeName")
        if meta["uid"] in uids or node not in nodes:
            continue
        is_near = any(abs(one.at - moment) <= AROUND_SECONDS for moment in moments)
        name = f"{meta['namespace']}/{meta['name']}"
        if meta["uid"] not in there:
            there.add(meta["uid"])
            if is_near:
                yield one.at, f"beside it, {name} comes to {node} at revision {one.revision}"
        if (one.gone or is_over(one.body)) and meta["uid"] not in ended:
            ended.add(meta["uid"])
            if is_near:
                yield one.at, f"beside it, {name} is no more on {node} at revision {one.revision}"
