"""Groups that are preempted as a whole or not at all (docs/semantics.md, Groups that go as a whole)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reference.state import Host, Instance


@dataclass(eq=False)
class Whole:
    """One group; ``instances`` by row."""

    instances: list[Instance] = field(default_factory=list)

    def there(self) -> list[Instance]:
        """Those on hosts."""
        return [k for k in self.instances if k.host is not None and not k.leaving]


def whole_of(k: Instance) -> Whole | None:
    """The group with which ``k`` is preempted. More important ones of it do not keep the others: then it is none."""
    return k.group if k.group is not None and len({m.rank for m in k.group.there()}) < 2 else None


def in_company(k: Instance) -> bool:
    """Whether others would have to go with ``k``."""
    group = whole_of(k)
    return group is not None and len(group.there()) > 1


def those_on(host: Host, victims: Sequence[Instance]) -> list[Instance]:
    return [k for k in victims if k.host is host]


def one_by_one(victims: Sequence[Instance]) -> list[Instance]:
    """Victims in the order in which they add up: those without a group first, then group by group, each by row."""
    ordered = [k for k in victims if whole_of(k) is None]
    for k in victims:
        if k not in ordered:
            ordered += sorted((m for m in victims if m.group is k.group), key=lambda m: m.row)
    return ordered
