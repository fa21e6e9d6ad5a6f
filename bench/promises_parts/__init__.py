"""Parts of bench/promises.py: the inputs, and what a run of one of them came to."""
