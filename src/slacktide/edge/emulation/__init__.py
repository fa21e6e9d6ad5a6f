"""The testbed with real work: nodes are network namespaces with CPU quotas, pods and users are processes.

What runs inside (:mod:`pod`, :mod:`user`, :mod:`forwarder`) are programs of their own and import nothing of slacktide.
"""
