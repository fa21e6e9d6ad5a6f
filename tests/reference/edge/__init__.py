"""Delay-aware placement and its comparators, slow and obvious: plain Python, one small file per method.

A method is a function ``choose(pod, nodes, cluster, draw) -> Node | None``: of
the nodes given it picks one on which the pod fits, or none when it fits
nowhere.  Pods come one after the other; whoever calls a method places the pod
(``Cluster.place``) before it asks for the next.  ``draw(n)`` picks one of ``n``
equal nodes and is called only when there are several.
"""
