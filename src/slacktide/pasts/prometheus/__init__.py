"""kube-state-metrics in Prometheus: what of it tells of a cluster, asked for in chunks and told as objects."""
