"""The program as a person starts it: a test run in the background ignores Ctrl-C, and so would what it starts."""

from __future__ import annotations

import sys

CODE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from slacktide.cli import main
sys.exit(main())
"""
PROGRAM = [sys.executable, "-c", CODE]
