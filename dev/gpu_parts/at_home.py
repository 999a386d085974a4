"""Finds results that need no GPU where the build is packed, because time on the machine with the GPU is
short: the least times of steps, and the losses of the CPU."""

import os

from speed import rooflines
from stage import Stage
from testing import cpu_losses, draw_shapes

DEVICES = ("h100", "h200")
MOST_SECONDS = 3600


def find_at_home(check, logs):
    """Returns the entries for the manifest. Reports each that cannot be found here; the machine with the GPU
    then finds it."""
    stage = Stage("pack", MOST_SECONDS, logs, dict(os.environ))
    found = {"rooflines": {}}
    for device in DEVICES:
        steps = rooflines(check, check.sizes.cases, device, stage.environment, stage.left())
        failed = sorted({entry["why"] for entry in steps.values() if "why" in entry})
        if stage.add(f"rooflines of {device}", "FAILED" if failed else "passed", detail=failed[0] if failed else f"of {len(steps)} steps"):
            found["rooflines"][device] = steps
    losses = cpu_losses(stage, check) if draw_shapes(stage, check) else None
    if losses:
        stage.add("losses of the CPU", "passed", detail=f"of {len(losses)} steps")
        found["cpu_losses"] = losses
    return found
