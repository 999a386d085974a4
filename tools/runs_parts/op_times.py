"""Reads a trace that --profile has written: the time of each op."""

import json
import math


def time_by_op(path):
    """Returns rows (op, seconds, calls) of all ranks, the longest first, or None if the file cannot be read or is no trace."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            events = json.load(file)["traceEvents"]
        totals = {}
        for event in events:
            if event.get("ph") == "X" and event.get("cat") in ("instruction", "communication", "data") and math.isfinite(event["dur"]):
                # The name of an instruction is "conv2d %7 of models/resnet50.yaml:3:3 (conv1)".
                name = event["name"].split(" %")[0]
                seconds, calls = totals.get(name, (0, 0))
                totals[name] = (seconds + event["dur"] / 1e6, calls + 1)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return sorted(((name, seconds, calls) for name, (seconds, calls) in totals.items()), key=lambda row: -row[1])
