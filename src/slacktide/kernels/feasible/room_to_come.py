"""Room that victims still take, where it is told apart (``policy.equals = kube-scheduler``; docs/semantics.md).

By the other settings what a victim takes counts as free from the decision on, and whoever comes begins when it is gone.
kube-scheduler waits with those that may not preempt it until it is gone. Those that may are nominated there meanwhile.
"""

from __future__ import annotations

from slacktide.kernels.feasible import free_index, host_slots
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@kernel
def lacks(tb: State, h: int, shape: int, cls: int) -> bool:
    """Whether host ``h`` has room for a demand only once victims are gone that are no less important than class
    ``cls``; O(resources * victims that still go)."""
    control = views.control(tb)
    if not views.rules(tb)["as_kube"] or control["leavers"] == 0:
        return False
    ours = views.classes(tb)[cls]["rank"]
    for r in range(views.free(tb).shape[1]):
        left = views.free(tb)[h, r]
        for i in range(control["leavers"]):
            one = views.leavers(tb)[i]
            theirs = views.classes(tb)[views.kinds(tb)[views.instances(tb)[one["row"]]["kind"]]["cls"]]["rank"]
            if one["host"] == h and one["until"] > control["now"] and theirs <= ours:
                left -= views.demand(tb)[one["shape"], r]
        if free_index.short_of(whole(views.demand(tb)[shape, r]), whole(left)) > 0:
            return True
    return False


@kernel
def comes(tb: State) -> None:
    """A pass begins: where victims are gone by now, there may be room for more than before; O(victims that go)."""
    control = views.control(tb)
    if not views.rules(tb)["as_kube"]:
        return
    kept = whole(0)
    for i in range(control["leavers"]):
        if views.leavers(tb)[i]["until"] > control["now"]:
            views.leavers(tb)[kept] = views.leavers(tb)[i]
            kept += 1
            continue
        h = whole(views.leavers(tb)[i]["host"])
        host_slots.note_release(tb, h)
        host_slots.look_again(tb, h)
    control["leavers"] = kept
