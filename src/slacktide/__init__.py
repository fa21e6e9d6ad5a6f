"""slacktide: keeps every workload above the availability it was promised.

``import slacktide as st`` is the Python API (docs/python.md); ``__init__.pyi`` has its types. Each name is imported
when it is used first, so that the command line, which needs few of them, starts at once.
"""

from importlib import import_module

__version__ = "0.1.0"

_PLACES = {
    "simulate": "api.simulating",
    "Simulation": "api.stepping",
    "State": "api.state",
    "Result": "api.result",
    "plot": "api.result",
    "generate": "api.sources",
    "Generated": "api.sources",
    "compare": "api.comparing",
    "Comparison": "api.comparing",
    "Experiment": "api.experiments",
    "plan": "api.planning",
    "report": "api.experiments",
    "list_policies": "api.listing",
    "list_generators": "api.listing",
    "list_settings": "api.listing",
    "load": "api.loading",
    "past": "api.pasts",
    "Past": "api.pasts",
    "CapacityPlan": "api.planning",
    "SlacktideError": "errors",
    "ConfigError": "errors",
    "InputError": "errors",
    "InputWarning": "errors",
    "OutputError": "errors",
    "PluginError": "errors",
    "ResultWarning": "errors",
    "RunsError": "errors",
}
"""Where each public name is."""

__all__ = ["__version__", *_PLACES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name in _PLACES:
        found = getattr(import_module(f"slacktide.{_PLACES[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'slacktide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
