"""Parts of bench/page.py."""
