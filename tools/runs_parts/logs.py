"""Reads logs of runs, as `--log FILE` writes them: a JSON object in each line."""

import dataclasses
import json
import math
import pathlib

from printing import is_unicode


class LogFault(Exception):
    """A file that is no log, described in one sentence."""


@dataclasses.dataclass
class RunLog:
    """`steps` and `epochs` are the objects of the log, in order. Those that a resumed run computes again are replaced."""

    name: str
    path: pathlib.Path
    steps: list = dataclasses.field(default_factory=list)
    epochs: list = dataclasses.field(default_factory=list)

    def add(self, entry):
        if entry.get("event") == "step":
            while self.steps and self.steps[-1]["step"] >= entry["step"]:
                self.steps.pop()
            while self.epochs and self.epochs[-1]["epoch"] >= entry["epoch"]:
                self.epochs.pop()
            self.steps.append(entry)
        elif entry.get("event") == "epoch":
            self.epochs.append({**entry, "step": self.steps[-1]["step"] if self.steps else 0})


def is_count(value):
    return type(value) is int and 0 <= value < 1 << 53


def read_log(path, name):
    run = RunLog(name, path)
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):  # a run that is under way, or was killed, may have written a part of a line
                break
            run.add(parsed(line, path, number))
    if not run.steps and not run.epochs:
        raise LogFault(f"'{path}' has no steps and no epochs; name a file that --log has written")
    return run


def parsed(line, path, number):
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LogFault(f"'{path}' line {number} is not JSON; name a file that --log has written") from error
    needs = {"step": ("step", "epoch"), "epoch": ("epoch",)}
    event = entry.get("event") if isinstance(entry, dict) else None
    if not isinstance(event, str) or not all(is_count(entry.get(key)) for key in needs.get(event, ())) or not all(map(is_unicode, entry)):
        raise LogFault(f"'{path}' line {number} is not of a log; name a file that --log has written")
    return entry


def read_logs(paths):
    """Reads files, and all files below folders whose names end in .jsonl or .log. Each run gets a short name of its own."""
    files = []
    for path in map(pathlib.Path, paths):
        found = sorted(file for file in path.rglob("*") if file.is_file() and file.suffix in (".jsonl", ".log")) if path.is_dir() else [path]
        if not found:
            raise LogFault(f"'{path}' has no file that ends in .jsonl or .log; name the files that --log has written")
        files += [file for file in found if file not in files and (not path.is_dir() or is_log(file))]
    if not files:
        raise LogFault(f"'{paths[0]}' has no file that --log has written; name the files")
    return [read_log(file, name) for file, name in zip(files, short_names(files))]


def is_log(file):
    """True if a file in a folder begins as a log does. Other programs write files with the same ending."""
    with open(file, "rb") as opened:
        return opened.read(10) == b'{"event":"' if file.suffix == ".log" else True


def short_names(files):
    """Returns for each path its last parts, without the suffix: as few as make all names different."""
    parts = [file.with_suffix("").parts for file in files]
    for count in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [str(file) for file in files]


def number_of(value):
    """Returns a value of a log as a number. Returns NaN if it is missing, null (which a log has for NaN and infinity), or too large to draw."""
    try:
        number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan
    return number if abs(number) < LARGEST else math.nan


LARGEST = 1e300  # larger numbers are not drawn

# The keys of the log that are no figures of the model.
NOT_METRICS = {"event", "step", "epoch", "loss", "train_loss", "val_loss", "images_per_second", "learning_rate", "seconds", "waited_share", "straggler",
               "straggler_seconds", "rising"}


def metrics_of(runs, events, begin=""):
    """Returns the names of the metrics in `events` ("steps" or "epochs") of the runs, in the order of the log. `begin` starts their keys and
    is removed."""
    names = []
    for run in runs:
        for entry in getattr(run, events)[:1]:
            for key in entry:
                name = key.removeprefix(begin)
                if key.startswith(begin) and key not in NOT_METRICS and not key.startswith("exchange_") and name not in names:
                    names.append(name)
    return names

