"""Round-trip times between nodes: an agent for each of them measures, smooths and publishes (docs/netprobe.md)."""
