"""Everything that reads what somebody wrote: a text, or the bytes of a file or of a packet.

Each either gives a value or raises what it says that it raises, in a time that does not explode with the length.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from slacktide.dryrun.quote import workloads
from slacktide.engine.journal import codec
from slacktide.engine.ledger import checkpoint
from slacktide.errors import ConfigError, InputError, SlacktideError, StateError
from slacktide.inputs import read_delays, read_host_events, read_hosts, read_workload
from slacktide.inputs.columns import access, affinity_text, cells, instances, occasions, terms
from slacktide.inputs.formats import erlang_exact
from slacktide.inputs.formats.network_file import read_network
from slacktide.kube.client import kinds
from slacktide.kube.client.addresses import split_address
from slacktide.kube.client.kinds import decode_status, identify, identity_of, split_event, split_listing
from slacktide.kube.client.kubeconfig import read_kubeconfig
from slacktide.kube.client.metadata import Metadata, unix_seconds
from slacktide.kube.client.quantities import nanos
from slacktide.kube.resources.custom_resources import WindowSpec
from slacktide.kube.resources.objects import NODE, POD, RESOURCE_CLAIM, Pod, ServiceClass, ServiceClassSpec
from slacktide.kube.translate import pod_groups
from slacktide.kube.translate.profiles import added_affinity, default_constraints
from slacktide.kube.translate.service_classes import PREFIX, Classes, mapping, window_of
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.kube.translate.user_access import access_of
from slacktide.model import Hosts
from slacktide.model.constraint import number
from slacktide.model.durations import parse_duration, parse_share
from slacktide.model.hours import minutes_of, zone_of
from slacktide.model.limit_fields import hours_of_text, limits_of_text
from slacktide.model.logins import parse_logins
from slacktide.model.window import Window, parse_epoch, turns
from slacktide.model.written_numbers import whole_number
from slacktide.netprobe import packets
from slacktide.netprobe.agent import read_keys
from slacktide.netprobe.peers import parse_peer
from slacktide.openslo import bindings, documents
from slacktide.pasts import audit, object_files, promises
from slacktide.settings import load
from slacktide.settings_file import read, read_documents
from support import made_past


class Parser(NamedTuple):
    """``call`` gives a value or raises one of ``refuses``; ``examples`` are right."""

    call: Callable[[Any], object]
    refuses: tuple[type[Exception], ...]
    examples: tuple[Any, ...]


def _said(annotations: dict[str, str], labels: dict[str, str] | None = None) -> Pod:
    # Text of an API server is UTF-8: of half a surrogate pair it makes a question mark, or the like.
    said = {key: value.encode("utf-8", "replace").decode() for key, value in annotations.items()}
    metadata = {"name": "p", "namespace": "a", "labels": labels or {}, "annotations": said}
    found = POD.decode(json.dumps({"metadata": metadata, "spec": {}}).encode())
    assert isinstance(found, Pod)
    return found


def _promised(name: str, text: str) -> object:
    """What a pod is promised that says this of itself."""
    classes = Classes("")
    spec = ServiceClassSpec(0.9, 1, namespaces=("*",))
    classes.see(ServiceClass(Metadata("gold"), spec))
    return classes.of(_said({PREFIX + name: text}, {PREFIX + "class": "gold"}), batch=False)


def _access(name: str, text: str) -> object:
    return access_of(_said({PREFIX + name: text}), "")


def _kueue(text: str) -> object:
    pod = _said({pod_groups.KUEUE_TOTAL: text}, {pod_groups.KUEUE_LABEL: "g"})
    member, groups = pod_groups.membership(pod), pod_groups.Groups()
    assert member is not None
    return groups.least(member)


def _window(field: str, text: str) -> object:
    """A window of a class, and when it begins."""
    said = {"rolling": text} if field == "rolling" else {"calendar": "1M", field: text}
    found = window_of(WindowSpec(**said))
    return _begins(found) if found.calendar is not None else found


def _begins(window: Window) -> object:
    return turns(window, datetime.fromisoformat("2026-01-01T00:00:00Z"), 0.0, timedelta(days=40).total_seconds())


REFUSED = (ValueError,)
UNSCHEDULABLE = (Unschedulable,)
OWN = {"slo": "0.5", "alpha": "10s", "approach": "concurrent", "disruptions": "1 per 1h", "cooldown": "10m"} | {
    "hours": "Mon-Fri 22:00-06:00 Europe/Berlin; Sat,Sun 00:00-24:00", "min-running": "5m",
}  # fmt: skip
USERS = {"users": "n3:0.5 n2:0.5", "data": "1.5", "preferred-node": "n3", "deadline": "0.2"}

AFFINITY = '{"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}}'
MANIFESTS = (
    "kind: Pod\nspec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}\n",
    "kind: List\nitems:\n- kind: Deployment\n  metadata: {name: w}\n  spec: {replicas: 2, template: {spec: {}}}\n",
)
RULES = "away web by host; near db by zone within (disk == ssd); spread web by zone 2 min 3"

TEXTS: dict[str, Parser] = {
    "a duration": Parser(parse_duration, REFUSED, ("30d", "1h30m", "0.5s", "7")),
    "a share": Parser(parse_share, REFUSED, ("0.9", "99.9%")),
    "a whole number": Parser(lambda text: whole_number(text, 0, 10**6), REFUSED, ("0", "1000000")),
    "an epoch": Parser(parse_epoch, REFUSED, ("1970-01-05T00:00:00Z", "2026-01-01T00:00:00+01:00")),
    "a timestamp": Parser(unix_seconds, REFUSED, ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456+14:00")),
    "users": Parser(parse_logins, REFUSED, ("n3", "n3:0.5 n2:0.5")),
    "hours": Parser(hours_of_text, (ConfigError,), ("Mon-Fri 22:00-06:00 Europe/Berlin; Sat,Sun 00:00-24:00",)),
    "a time of day": Parser(minutes_of, (ConfigError,), ("00:00", "24:00")),
    "a time zone": Parser(zone_of, (ConfigError,), ("UTC", "Europe/Berlin")),
    "a quantity": Parser(nanos, REFUSED, ("500m", "1.5", "2Gi", "1e3", "1E-3", "0.1Ki")),
    "an address": Parser(split_address, REFUSED, ("10.0.0.1:80", "[::1]:80")),
    "a peer": Parser(parse_peer, REFUSED, ("n1=10.0.0.1:80",)),
    "a selector": Parser(bindings.parse, REFUSED, ("app=web,tier in (front, back),!canary", "a!=b, c notin (d)")),
    "a number of an attribute": Parser(number, (), ("1", "1.5")),
    "classes of priorities": Parser(mapping, (ConfigError,), ("vital=gold", "vital=gold,a=b")),
    "a default spread": Parser(
        default_constraints, (ConfigError,),
        ("system", '[{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]'),
    ),
    "an affinity for all": Parser(added_affinity, (ConfigError,), (AFFINITY,)),
    "manifests": Parser(lambda text: workloads(text, "-"), (InputError,), MANIFESTS),
    "a setting": Parser(lambda text: load(overrides=[text]), (ConfigError,), ("policy.name=priority", "qos.alpha=7")),
    "pods of a group of Kueue": Parser(_kueue, UNSCHEDULABLE, ("1", "1000000")),
    "a number of a table": Parser(cells.parse_float, REFUSED, ("1.5", "-1e3", "inf", "nan")),
    "a whole number of a table": Parser(cells.parse_integer, REFUSED, ("-7", "9223372036854775807")),
    "a flag": Parser(cells.parse_flag, REFUSED, ("true", "0")),
    "pairs": Parser(cells.parse_pairs, REFUSED, ("600=30; 1200=5",)),
    "users of a table": Parser(access.parse_users, REFUSED, ("n3:0.5 n2:0.5", "")),
    "a name": Parser(access.parse_name, REFUSED, ("n3",)),
    "a deadline": Parser(access.parse_deadline, REFUSED, ("0.2", "inf")),
    "a volume": Parser(access.parse_data, REFUSED, ("1.5",)),
    "a kind": Parser(instances.parse_kind, REFUSED, ("batch", "service")),
    "an approach": Parser(instances.parse_approach, REFUSED, ("concurrent",)),
    "a count": Parser(instances.parse_count, REFUSED, ("7",)),
    "scale events": Parser(instances.parse_scale, REFUSED, ("600=5; 1200=2",)),
    "constraints": Parser(terms.parse_term, REFUSED, ('Ql > 4; wN == 2; "a b" /= "\\"x"',)),
    "attributes": Parser(terms.parse_attributes, REFUSED, ('Ql=3; "a b"="c"',)),
    "marks": Parser(affinity_text.parse_marks, REFUSED, ("web port:80",)),
    "counted marks": Parser(affinity_text.parse_counted, REFUSED, ("1 web; 0 port:80",)),
    "rules": Parser(affinity_text.parse_rules, REFUSED, (RULES,)),
    "preferences": Parser(affinity_text.parse_preferences, REFUSED, ("5 web by zone; -3 if Ql > 4",)),
    "a budget": Parser(affinity_text.parse_budget, REFUSED, ("b min-available 2", "b max-unavailable 0")),
    "outages": Parser(occasions.parse_past, REFUSED, ("-7200=120; -60=10",)),
    "unreadiness": Parser(occasions.parse_unreadiness, REFUSED, ("600=30",)),
    "resizes": Parser(occasions.parse_resizing, REFUSED, ("600: cpu=2 memory=1; 900: cpu=1",)),
    "amounts": Parser(occasions.parse_amounts, REFUSED, ("cpu=2 memory=1",)),
    "an Erlang list": Parser(erlang_exact.parse_term, REFUSED, ('{"Ql",">","4"},{"wN","==","2"}',)),
    **{f"a window's {one}": Parser(partial(_window, one), (ConfigError,), (text,))
       for one, text in {"rolling": "30d", "calendar": "1Q", "time_zone": "Europe/Berlin", "budget": "accrued",
                         "start": "2026-01-01T00:00:00"}.items()},
    **{f"a limit: {one}": Parser(partial(limits_of_text, one), (ConfigError,), (text,))
       for one, text in OWN.items() if one in ("disruptions", "cooldown", "hours", "min-running")},
    **{f"annotation {one}": Parser(partial(_promised, one), UNSCHEDULABLE, (text,)) for one, text in OWN.items()},
    **{f"annotation {one}": Parser(partial(_access, one), UNSCHEDULABLE, (text,)) for one, text in USERS.items()},
}  # fmt: skip


# -- bytes -----------------------------------------------------------------------------------------------------------


class _Folder:
    """A place for the file that is read next; whoever uses it sets ``path`` first."""

    path = Path()


FOLDER = _Folder()


def _file(name: str, reads: Callable[[Path], object], data: bytes) -> object:
    path = FOLDER.path / name
    path.write_bytes(data)
    return reads(path)


def _in_file(name: str, reads: Callable[[Path], object], refuses: type[Exception], *examples: str) -> Parser:
    return Parser(partial(_file, name, reads), (refuses,), tuple(one.encode() for one in examples))


def _hosts() -> Hosts:
    path = FOLDER.path / "known-hosts.csv"
    path.write_text("id,name,cpu,memory,attributes\n1,a,1,1,\n2,b,1,1,\n")
    return read_hosts(path)


def _checkpoint(data: bytes) -> object:
    """What an Availability says for the next leader."""
    said = msgspec.json.decode(data)
    if not isinstance(said, dict):
        raise msgspec.DecodeError
    return checkpoint.read(said)


def _audited(path: Path) -> object:
    """All that a log tells."""
    story = audit.story([path])
    return [*story.beginning, *story.changes]


PACKET = b"SLKP\1\1" + b"\0" * 150
DECODING = (msgspec.DecodeError, UnicodeDecodeError)
POD_BYTES = b'{"metadata":{"name":"p","namespace":"a","uid":"u"},"spec":{"containers":[{"name":"c","resources":{}}]}}'
EVENT = b'{"type":"ADDED","object":' + POD_BYTES + b"}"
LISTED = b'{"metadata":{"resourceVersion":"1","continue":""},"items":[' + POD_BYTES + b"]}"
KUBECONFIG = yaml.safe_dump({
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
    "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
})  # fmt: skip
NETWORK = "places: [a, b]\nrtt_ms: [[0, 5], [5, 0]]\nsite: zone\nimages: {i: {seconds: 3, size: 1, present: [a]}}\n"
OPENSLO = (
    "apiVersion: openslo/v1\nkind: SLO\nmetadata: {name: web}\nspec:\n  service: web\n  budgetingMethod: Timeslices\n"
    "  timeWindow: [{duration: 30d, isRolling: true}]\n  objectives: [{target: 0.9, timeSliceTarget: 1}]\n"
)
BOOKS = (
    b'{"version": 5, "approach": "concurrent", "live": 1, "preemptions": 0, "starts": 1, "names": ["p"], "at": 1.5, '
    b'"data": "AAAA"}'
)

PROMISES = "classes: [{name: gold, slo: 99%, rank: 1}]\nworkloads: [{class: gold, label: a=b}]\n"
OBJECTS = json.dumps(made_past.listed(made_past.node("a"), made_past.pod("p", "", "a", ready=1.0)))
AUDITED = "\n".join(made_past.short_log().lines)

BYTES: dict[str, Parser] = {
    "an object": Parser(POD.decode, (), (POD_BYTES,)),
    "a node": Parser(NODE.decode, (), (b'{"metadata":{"name":"n"},"status":{"conditions":[]}}',)),
    "a claim": Parser(RESOURCE_CLAIM.decode, (), (b'{"metadata":{"name":"n"},"spec":{"devices":{"requests":[]}}}',)),
    "a list": Parser(split_listing, DECODING, (LISTED,)),
    "a whole list": Parser(POD.decode_list, DECODING, (LISTED,)),
    "a line of a watch": Parser(split_event, DECODING, (EVENT,)),
    "an event": Parser(POD.decode_event, DECODING, (EVENT, b'{"type":"ERROR","object":{"code":410}}')),
    "an answer": Parser(decode_status, (), (b'{"code":410,"reason":"Expired","message":"old"}',)),
    "a name of an object": Parser(identify, (), (POD_BYTES,)),
    "which object": Parser(identity_of, (), (POD_BYTES,)),
    "fields": Parser(kinds.shallow_fields, REFUSED, (POD_BYTES, EVENT)),
    "elements": Parser(kinds.shallow_elements, REFUSED, (b'[1,"a",{"b":[2]}]',)),
    "a line of a record": Parser(codec.decode, REFUSED, (b'["begin",1]', b'["wake","u"]', b'["gone","u",1.0]')),
    "a checkpoint": Parser(_checkpoint, (StateError, *DECODING, RecursionError), (BOOKS,)),
    "a packet": Parser(lambda data: packets.opened(data, (b"k" * 32,)), (packets.Refused,), (PACKET,)),
    "settings": _in_file("s.yaml", load, ConfigError, "policy: {name: priority}\nqos: {alpha: 7}\n"),
    "settings in TOML": _in_file("s.toml", load, ConfigError, '[policy]\nname = "priority"\n'),
    "settings in JSON": _in_file("s.json", load, ConfigError, '{"policy": {"name": "priority"}}'),
    "sections": _in_file("t.yaml", read, ConfigError, "a: {b: [1, 2]}\n", "a: &x {b: 1}\nc: *x\n"),
    "documents": _in_file("d.yaml", lambda path: read_documents(path, "d"), ConfigError, "a: 1\n---\n- b: 2\n"),
    "OpenSLO": _in_file("o.yaml", lambda path: documents.read_files([path]), ConfigError, OPENSLO),
    "a network": _in_file("n.yaml", read_network, SlacktideError, NETWORK),
    "a kubeconfig": _in_file("kubeconfig", lambda path: read_kubeconfig([path]), ConfigError, KUBECONFIG),
    "keys": _in_file("keys", read_keys, ConfigError, "k" * 40 + "\n"),
    "a workload": _in_file(
        "w.csv", read_workload, InputError, "id,admission,duration,cpu,memory,class\n1,0.5,60,0.5,0.25,gold\n"
    ),
    "a workload in Parquet": _in_file("w.parquet", read_workload, InputError, "PAR1"),
    "a workload of Erlang": _in_file(
        "w.erl", read_workload, InputError, '{600,1,705004586,2503386,0.0937,0.03198,11,1,[{"Ql",">","4"}]}.\n'
    ),
    "hosts": _in_file("h.csv", read_hosts, InputError, "id,name,cpu,memory,attributes\n1,a,1,1,Ql=3\n"),
    "delays": _in_file("d.txt", read_delays, InputError, "{9}.\n{5}.\n"),
    "promises": _in_file("p.yaml", promises.read, InputError, PROMISES),
    "objects": _in_file("o.json", lambda path: object_files.story([path]), InputError, OBJECTS),
    "objects in YAML": _in_file("y.yaml", lambda path: object_files.story([path]), InputError, OBJECTS),
    "an audit log": _in_file("audit.log", _audited, InputError, AUDITED),
    "events of hosts": _in_file(
        "e.csv", lambda path: read_host_events(path, _hosts()), InputError, "time,host,event\n5,a,fail\n7,2,repair\n"
    ),
}  # fmt: skip
