"""``python -m slacktide``: the same as the command of that name."""

from slacktide.cli import main

main()
