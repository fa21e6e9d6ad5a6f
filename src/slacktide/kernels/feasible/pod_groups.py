"""Pod groups: how many of each are on hosts, and of those that are preempted as a whole, who.

docs/semantics.md, 'Groups that go as a whole'. Where there are none, nothing here costs more than a comparison.
"""

from __future__ import annotations

from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.request_records import GOES_ANYWAY
from slacktide.kernels.tables.schema import NOBODY, State


@leaf
def any_whole(tb: State) -> bool:
    """Whether some group is preempted as a whole; O(1)."""
    return views.control(tb)["whole_members"] > 0


@leaf
def whole_of(tb: State, row: int) -> int:
    """The group as a whole with which an instance is preempted, or -1: it is preempted by itself; O(1)."""
    if not any_whole(tb):
        return whole(-1)
    g = whole(views.pod_group(tb)[row])
    if g < 0 or views.next_in_group(tb)[row] == GOES_ANYWAY:
        return whole(-1)
    group = views.pod_groups(tb)[g]
    return g if group["whole"] and not group["mixed"] else whole(-1)


@leaf
def in_company(tb: State, row: int) -> bool:
    """Whether others must go with an instance on a host, if it is preempted; O(1)."""
    g = whole_of(tb, row)
    return g >= 0 and views.pod_groups(tb)[g]["placed"] > 1


@leaf
def shake(tb: State) -> None:
    """Whom a group may go for has changed on other hosts, too: nothing that was found in this pass holds on; O(1)."""
    control = views.control(tb)
    control["tightened"] = control["looks"] + 1
    control["loosened"] += 1


@kernel
def link(tb: State, g: int, row: int) -> None:
    """An instance of group ``g`` is on a host now; O(its instances on hosts)."""
    group, following = views.pod_groups(tb)[g], views.next_in_group(tb)
    before, at = whole(-1), whole(group["first"])
    if following[row] == GOES_ANYWAY:
        return
    while at >= 0 and at < row:
        before, at = at, whole(following[at])
    following[row] = at
    if before < 0:
        group["first"] = row
    else:
        following[before] = row


@kernel
def unlink(tb: State, g: int, row: int) -> None:
    """An instance of group ``g`` is on no host any more; O(its instances on hosts)."""
    group, following = views.pod_groups(tb)[g], views.next_in_group(tb)
    before, at = whole(-1), whole(group["first"])
    if following[row] == GOES_ANYWAY:
        return
    while at != row:
        before, at = at, whole(following[at])
    if before < 0:
        group["first"] = following[row]
    else:
        following[before] = following[row]
    following[row] = -1


@leaf
def rank_of(tb: State, row: int) -> int:
    """The importance of an instance; O(1)."""
    return whole(views.classes(tb)[views.kinds(tb)[views.instances(tb)[row]["kind"]]["cls"]]["rank"])


@kernel
def weigh(tb: State, g: int) -> None:
    """Note whether instances of group ``g`` that are on hosts differ in importance: then the more important ones do not
    keep the others; O(its instances on hosts)."""
    group = views.pod_groups(tb)[g]
    first = whole(group["first"])
    row = first
    while row >= 0 and rank_of(tb, row) == rank_of(tb, first):
        row = whole(views.next_in_group(tb)[row])
    group["mixed"] = row >= 0


@kernel
def count(tb: State, row: int, by: int) -> None:
    """Count an instance that comes to a host (1), or leaves one (-1), in its group; O(1), of a whole one O(it)."""
    if len(views.pod_groups(tb)) == 0 or views.pod_group(tb)[row] < 0:
        return
    g = whole(views.pod_group(tb)[row])
    group = views.pod_groups(tb)[g]
    group["placed"] += by
    if not group["whole"]:
        return
    if by > 0:
        link(tb, g, row)
    else:
        unlink(tb, g, row)
    weigh(tb, g)
    shake(tb)


@leaf
def has_changed(tb: State, shared: bool) -> None:
    """Somebody came to a host or left one; ``shared``: others on other hosts have the same metric; O(1)."""
    if shared and any_whole(tb):
        shake(tb)


@leaf
def begins_to_ask(tb: State, row: int) -> None:
    """An instance has its turn: its own group does not go for it. What others found is of no use to it; O(1)."""
    control = views.control(tb)
    control["asking"] = whole_of(tb, row)
    if control["asking"] >= 0:
        control["loosened"] += 1


@leaf
def has_asked(tb: State) -> None:
    """Its turn is over, and what it found is of no use to others; O(1)."""
    control = views.control(tb)
    if control["asking"] >= 0:
        control["loosened"] += 1
    control["asking"] = NOBODY
