"""``python -m slacktide``: the same as the command of that name."""

import sys

from slacktide.cli import main

sys.exit(main())
