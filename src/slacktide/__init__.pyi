from slacktide.api.comparing import Comparison as Comparison
from slacktide.api.comparing import compare as compare
from slacktide.api.experiments import Experiment as Experiment
from slacktide.api.experiments import report as report
from slacktide.api.listing import list_generators as list_generators
from slacktide.api.listing import list_policies as list_policies
from slacktide.api.listing import list_settings as list_settings
from slacktide.api.loading import load as load
from slacktide.api.pasts import Past as Past
from slacktide.api.pasts import past as past
from slacktide.api.planning import CapacityPlan as CapacityPlan
from slacktide.api.planning import plan as plan
from slacktide.api.result import Result as Result
from slacktide.api.result import plot as plot
from slacktide.api.simulating import simulate as simulate
from slacktide.api.sources import Generated as Generated
from slacktide.api.sources import generate as generate
from slacktide.api.state import State as State
from slacktide.api.stepping import Simulation as Simulation
from slacktide.errors import ConfigError as ConfigError
from slacktide.errors import InputError as InputError
from slacktide.errors import InputWarning as InputWarning
from slacktide.errors import OutputError as OutputError
from slacktide.errors import PluginError as PluginError
from slacktide.errors import ResultWarning as ResultWarning
from slacktide.errors import RunsError as RunsError
from slacktide.errors import SlacktideError as SlacktideError

__all__ = [
    "CapacityPlan",
    "Comparison",
    "ConfigError",
    "Experiment",
    "Generated",
    "InputError",
    "InputWarning",
    "OutputError",
    "Past",
    "PluginError",
    "Result",
    "ResultWarning",
    "RunsError",
    "Simulation",
    "SlacktideError",
    "State",
    "__version__",
    "compare",
    "generate",
    "list_generators",
    "list_policies",
    "list_settings",
    "load",
    "past",
    "plan",
    "plot",
    "report",
    "simulate",
]
__version__: str
