"""Pods' constraints on nodes and neighbours as the core has them, for all pods of a cluster together.

The terms of a pod concern other pods. A pod that they select carries a mark that the core counts,
and keeps away in turn where the term is anti-affinity. So a pod's placement depends on the terms
of all pods. :class:`ConstraintIndex` knows them: it learns every pod, says whose placement
changed by that, and forgets terms that nobody has any more.

Pods of one template share one placement, which is computed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import chain

import msgspec

from slacktide.kube.indexes import take_out
from slacktide.kube.resources.objects import Pod
from slacktide.kube.translate.nodes import PREFER_NO_SCHEDULE, NodeView, SharedDomains, host_ports, needed_features
from slacktide.kube.translate.pod_terms import EVEN, READ, PodTerms, active, terms_of
from slacktide.kube.translate.profiles import NOTHING_ADDED, Added
from slacktide.kube.translate.selectors import Group, TermEffect, domains
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import Constraint, Term, taint_attribute
from slacktide.model.placement import NO_NEIGHBOURS, Placement, Preference, Rule, Topology


@dataclass(frozen=True, slots=True)
class PodConstraints:
    """Where a pod may run: the term on its node, and the placement among its neighbours."""

    term: Term
    placement: Placement


class _Template:
    """Pods alike: same namespace, labels and part of the spec."""

    __slots__ = ("active", "added", "constraints", "deleting", "idle", "key", "labels", "namespace", "terms", "uids")

    def __init__(self, key: bytes, pod: Pod, terms: PodTerms, added: Added) -> None:
        self.key, self.added = key, added
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.deleting = pod.metadata.deletion_timestamp is not None
        self.terms = terms
        self.active = terms
        """Those that have an effect."""
        self.idle: frozenset[str] = frozenset()
        """Topology keys of the others."""
        self.uids: dict[str, None] = {}
        self.constraints: PodConstraints | None = None

    def buckets(self) -> Iterator[_Bucket]:
        """Where groups that may mean it are looked up."""
        for namespace in (self.namespace, _EVERYWHERE):
            yield namespace, "", ""
            if not self.has_many_labels:
                for key, value in self.labels.items():
                    yield namespace, key, value
        if self.has_many_labels:
            yield _MANY_LABELS

    @property
    def has_many_labels(self) -> bool:
        """Whether it is not found by its labels, of which an object of a MiB has tens of thousands."""
        return len(self.labels) > MOST_LABELS


_Bucket = tuple[str, str, str]
"""Namespace (or everywhere), and a label's key and value (or none)."""
_EVERYWHERE = "*"
FEW_GROUPS = 8
LONG = 1024
"""What a template is known by is kept as long as this, in bytes, and as a digest where it is longer."""
MOST_LABELS = 256
"""Pods with more labels are looked at for each group, and each group for them."""
MOST_BUCKETS = 256
"""In how many places a group is looked up; one that needs more is looked up by its namespaces alone."""
_MANY_LABELS = "*", "*", "*"


class ConstraintIndex:
    """All pods' terms, and from them each pod's placement; ``added`` is node affinity for all pods of a scheduler's
    name."""

    def __init__(self, added: Mapping[str, Added] | None = None) -> None:
        self._added = {name: one for name, one in (added or {}).items() if one != NOTHING_ADDED}
        self._encode = msgspec.msgpack.Encoder().encode
        self._pods: dict[str, _Template] = {}
        self._templates: dict[bytes, _Template] = {}
        self._located: dict[_Bucket, dict[bytes, _Template]] = {}
        self._namespace_labels: dict[str, Mapping[str, str]] = {}
        self._soft_taints: tuple[tuple[str, str], ...] = ()
        self._domains = SharedDomains()
        self._uses: dict[TermEffect, int] = {}
        self._groups: dict[Group, dict[TermEffect, None]] = {}
        self._buckets: dict[_Bucket, dict[Group, None]] = {}
        self._outdated: dict[bytes, _Template] = {}
        self._idle: dict[str, dict[bytes, _Template]] = {}
        """By topology key that no node has: templates with such terms."""
        self._anybody: dict[str, bool] = {}
        self._members: dict[str, Group] = {}
        """Who carries the marks of terms that look for pods, by mark."""
        self.version = 0
        """Another one when pods are of other kinds than before, or carry other marks."""

    def learn(self, pod: Pod, exclusive: Sequence[str] = ()) -> bool:
        """Takes note of a pod, new or changed, of ours or of others on our nodes; says whether this changed the
        placement of any other pod (see :meth:`outdated`). Never raises.

        ``exclusive`` names its claims that only one pod may use at a time (ReadWriteOncePod).
        """
        uid = _identity(pod)
        key = self._key(pod, exclusive)
        before = self._pods.get(uid)
        if before is not None and before.key == key:
            return False
        grew = False
        template = self._templates.get(key)
        if template is None:
            template = self._template(key, pod, exclusive)
            grew = self._register(template)
        template.uids[uid] = None
        self._pods[uid] = template
        if before is not None:
            self._leave(before, uid)
        return grew

    def forget(self, pod: Pod) -> None:
        """The pod is gone; terms that no pod has any more are forgotten. An unknown pod is ignored.

        Other pods keep their placements: a mark without a rule, and a rule without a carrier, have no effect.
        """
        uid = _identity(pod)
        template = self._pods.pop(uid, None)
        if template is not None:
            self._leave(template, uid)

    def constraints_of(self, pod: Pod) -> PodConstraints:
        """The pod's term and placement as of now, as :meth:`learn` last saw it; the same object for all pods alike.

        Raises :class:`Unschedulable` where the pod is malformed, unless it is on a node already: then what could be
        read counts, for it carries marks all the same.
        """
        template = self._pods.get(_identity(pod))
        if template is None:
            template = self._template(self._key(pod, ()), pod, ())
        if template.active.problem and not pod.spec.node_name:
            raise Unschedulable(template.active.problem)
        return self._of(template)

    def effects_of(self, pod: Pod) -> Sequence[TermEffect]:
        """What the terms of a pod that was learned do to others."""
        template = self._pods.get(_identity(pod))
        return () if template is None else template.active.effects

    def anybody(self, mark: str) -> bool:
        """Whether any pod that we know carries a mark; O(kinds of pods) after these changed, else O(1)."""
        found = self._anybody.get(mark)
        if found is None:
            group = self._members.get(mark)
            if group is None:
                found = any(mark in self._of(one).placement.marks for one in self._templates.values())
            else:  # whatever else those are to be worked out for
                found = next(self._selected(group), None) is not None
            self._anybody[mark] = found
        return found

    def _of(self, template: _Template) -> PodConstraints:
        if template.constraints is None:
            template.constraints = self._work_out(template)
        return template.constraints

    def _changed(self) -> None:
        self.version += 1
        self._anybody.clear()

    def outdated(self) -> tuple[str, ...]:
        """The uids of learned pods whose placement changed since this was last asked, through others' terms."""
        found = tuple(chain.from_iterable(one.uids for one in self._outdated.values()))
        self._outdated.clear()
        return found

    def on_namespace_update(self, name: str, labels: Mapping[str, str] | None) -> bool:
        """A namespace's labels, ``None`` when it is gone; says whether the placement of any pod may have changed."""
        if (labels or {}) == self._namespace_labels.get(name, {}):
            return False
        if labels:
            self._namespace_labels[name] = dict(labels)
        else:
            del self._namespace_labels[name]
        selective = any(not peers.namespace_selector.nothing for group in self._groups for peers in group)
        return selective and self._invalidate(self._located.get((name, "", ""), {}).values())

    def see_soft_taints(self, taints: Iterable[tuple[str, str]]) -> bool:
        """(key, value) of the PreferNoSchedule taints of all nodes; says whether placements may have changed."""
        found = tuple(sorted(set(taints)))
        if found == self._soft_taints:
            return False
        self._soft_taints = found
        return self._invalidate(self._templates.values())

    def on_node_update(self, before: NodeView | None, now: NodeView | None) -> bool:
        """A node is new, another than before, or gone; says whether placements may have changed."""
        keys = self._domains.see(before, now)
        grew = bool(keys) and self._invalidate(
            one
            for one in self._templates.values()
            if any(rule.kind == "spread" and rule.topology.key in keys for rule in one.terms.rules)
        )
        for key in [one for one in self._idle if self._domains.knows(one)]:
            for template in list(self._idle.get(key, {}).values()):
                self._withdraw(template)
                grew |= self._enter(template) | self._invalidate((template,))
        return grew

    def _key(self, pod: Pod, exclusive: Sequence[str]) -> bytes:
        metadata = pod.metadata
        encoded = self._encode(
            (
                metadata.namespace,
                metadata.labels,
                metadata.deletion_timestamp is not None,
                *(getattr(pod.spec, name) for name in READ),
                host_ports(pod),
                needed_features(pod),
                sorted(exclusive),
                pod.spec.scheduler_name if pod.spec.scheduler_name in self._added else "",
            )
        )
        return encoded if len(encoded) <= LONG else blake2b(encoded, digest_size=32).digest()

    def _template(self, key: bytes, pod: Pod, exclusive: Sequence[str]) -> _Template:
        added = self._added.get(pod.spec.scheduler_name, NOTHING_ADDED)
        return _Template(key, pod, terms_of(pod, host_ports(pod), sorted(exclusive)), added)

    def _register(self, template: _Template) -> bool:
        grew = self._enter(template)
        self._templates[template.key] = template
        for bucket in template.buckets():
            self._located.setdefault(bucket, {})[template.key] = template
        return grew

    def _enter(self, template: _Template) -> bool:
        """The effects of a template's terms, as far as they have any."""
        self._changed()
        template.active, template.idle = active(template.terms, self._domains.knows)
        for key in template.idle:
            self._idle.setdefault(key, {})[template.key] = template
        grew = False
        news: dict[Group, None] = {}
        for effect in template.active.effects:
            self._uses[effect] = self._uses.get(effect, 0) + 1
            if self._uses[effect] > 1:
                continue
            group = effect.group
            if group not in self._groups:
                self._groups[group] = {}
                for bucket in _buckets_of(group):
                    self._buckets.setdefault(bucket, {})[group] = None
            self._groups[group][effect] = None
            news[group] = None
            if effect.role == "member":
                self._members[effect.mark] = group
        for template in self._concerned(news):
            template.constraints = None
            self._outdated[template.key] = template
            grew = True
        return grew

    def _withdraw(self, template: _Template) -> None:
        """The effects of a template's terms are no more."""
        for key in template.idle:
            take_out(self._idle, key, template.key)
        over = []
        for effect in template.active.effects:
            self._uses[effect] -= 1
            if not self._uses[effect]:
                over.append(effect)
        for other in self._concerned(dict.fromkeys(one.group for one in over)):
            other.constraints = None
        for effect in over:
            self._drop(effect)

    def _concerned(self, groups: Collection[Group]) -> Iterator[_Template]:
        """Templates whose pods are of some of the groups, and maybe others.

        Asking each of many groups about all pods takes longer than looking again at all that may be meant.
        """
        if len(groups) <= FEW_GROUPS:
            for group in groups:
                yield from self._selected(group)
            return
        for bucket in dict.fromkeys(bucket for group in groups for bucket in (*_buckets_of(group), _MANY_LABELS)):
            yield from self._located.get(bucket, {}).values()

    def _leave(self, template: _Template, uid: str) -> None:
        template.uids.pop(uid, None)
        if template.uids:
            return
        self._changed()
        del self._templates[template.key]
        for bucket in template.buckets():
            take_out(self._located, bucket, template.key)
        self._withdraw(template)

    def _drop(self, effect: TermEffect) -> None:
        del self._uses[effect]
        group = effect.group
        if effect.role == "member":
            self._members.pop(effect.mark, None)  # gone already where a namespace "*" is written as all of them are
        take_out(self._groups, group, effect)
        if group not in self._groups:
            for bucket in _buckets_of(group):
                take_out(self._buckets, bucket, group)

    def _invalidate(self, templates: Iterable[_Template]) -> bool:
        some = False
        self._changed()
        for template in templates:
            template.constraints = None
            self._outdated[template.key] = template
            some = True
        return some

    def _selected(self, group: Group) -> Iterator[_Template]:
        """The templates whose pods are of the group."""
        for bucket in (*_buckets_of(group), _MANY_LABELS):
            for template in self._located.get(bucket, {}).values():
                if self._means(group, template):
                    yield template

    def _means(self, group: Group, template: _Template) -> bool:
        labels = self._namespace_labels.get(template.namespace, {})
        return all(peers.matches(template.namespace, labels, template.labels) for peers in group)

    def _effects_on(self, template: _Template) -> list[TermEffect]:
        """What all known terms have the template's pods do, in an order that does not depend on who came first."""
        found: dict[Group, None] = {}
        for bucket in template.buckets():
            found.update(self._buckets.get(bucket, {}))
        if template.has_many_labels:
            found.update(dict.fromkeys(self._groups))
        effects = [one for group in found if self._means(group, template) for one in self._groups[group]]
        return sorted(effects, key=lambda one: (one.role, one.mark))

    def _work_out(self, template: _Template) -> PodConstraints:
        terms, (added, liked) = template.active, template.added
        marks, rules = list(terms.marks), list(dict.fromkeys(self._within_ours(one) for one in terms.rules))
        preferences = [*terms.preferences, *liked]
        for one in self._effects_on(template):
            if one.role == "member" or (one.role == "counted" and not template.deleting):
                marks.append(one.mark)
            elif one.role == "avoids":
                rules.append(_away(one.mark, one.key))  # none twice: marks of effects are their own
            elif one.role == "drawn":
                preferences.append(Preference(one.weight, one.mark, domains(one.key)))
        for key, value in self._soft_taints:
            if not any(one.covers(PREFER_NO_SCHEDULE, key, value) for one in terms.tolerations):
                tainted = Constraint(taint_attribute(PREFER_NO_SCHEDULE, key), "==", value)
                preferences.append(Preference(-EVEN, term=Term((tainted,))))
        placement = Placement(tuple(sorted(set(marks))), tuple(rules), tuple(preferences))
        conditions = (*terms.conditions, *added)
        return PodConstraints(Term(conditions), placement if placement != NO_NEIGHBOURS else NO_NEIGHBOURS)

    def _within_ours(self, rule: Rule) -> Rule:
        """A spread counts in domains that have nodes of ours."""
        if rule.kind != "spread":
            return rule
        within = rule.topology.within.constraints
        counted = Term((self._domains.condition(rule.topology.key), *within))
        return replace(rule, topology=Topology(rule.topology.key, counted))


@lru_cache(maxsize=2**16)
def _away(mark: str, key: str) -> Rule:
    """A rule that the pods of a group share, of whom there may be as many as there are pods."""
    return Rule("away", mark, domains(key))


def _identity(pod: Pod) -> str:
    metadata = pod.metadata
    return metadata.uid or f"{metadata.namespace}/{metadata.name}"


def _buckets_of(group: Group) -> tuple[_Bucket, ...]:
    """Where a group is looked up: by namespace and, if it needs a label with one of some values, by that."""
    first = group[0]
    namespaces = first.namespaces if first.namespace_selector.nothing else (_EVERYWHERE,)
    for key, operator, values in first.selector.requirements:
        if operator == "In" and len(namespaces) * len(values) <= MOST_BUCKETS:
            return tuple((namespace, key, value) for namespace in namespaces for value in values)
    return tuple((namespace, "", "") for namespace in namespaces)
