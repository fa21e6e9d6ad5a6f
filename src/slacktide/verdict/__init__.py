"""The verdict on a cluster's past: what was promised, what kube-scheduler delivered, what slacktide would have."""
