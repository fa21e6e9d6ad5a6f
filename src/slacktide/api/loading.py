"""``slacktide.load``: what was saved, as it was."""

from __future__ import annotations

import os

from slacktide.api.configuring import folder_at, in_python
from slacktide.api.experiments import Experiment
from slacktide.api.planning import CapacityPlan
from slacktide.api.result import Result, Saved
from slacktide.errors import fail
from slacktide.experiment import curve
from slacktide.results.experiment import ABOUT, MANIFEST


@in_python("load")
def load(folder: str | os.PathLike[str]) -> Result | Experiment | CapacityPlan:
    """What is in a folder, with the same frames as when it was written, also by the command line.

    Parameters
    ----------
    folder : path
        Of :meth:`Result.save`, :class:`Experiment`, or :func:`plan`.

    Returns
    -------
    Result, Experiment or CapacityPlan

    Raises
    ------
    InputError
        For a folder that holds none of them.
    """
    place = folder_at("load", folder)
    if (place / curve.JSON).is_file():
        return CapacityPlan(*curve.read(place))
    if (place / ABOUT).is_file():
        return Experiment(place)
    if (place / MANIFEST).is_file():
        return Result(Saved(place))
    raise fail(place, "a folder of results, of an experiment or of a plan")
