"""slacktide: keeps every workload above the availability it was promised."""

__version__ = "0.1.0.dev0"
