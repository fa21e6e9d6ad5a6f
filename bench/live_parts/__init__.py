"""Parts of bench/live.py: a control plane, load on it, the cases, and what needs no cluster."""
