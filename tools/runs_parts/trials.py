"""The trials of a sweep: which keys they vary, and the name of each."""

import dataclasses
import hashlib
import itertools
import math
import re

from tool import Mistake

MOST_TRIALS = 10_000
LONGEST_NAME = 100  # characters of the name of a trial, which names a folder


@dataclasses.dataclass(frozen=True)
class Trial:
    """`settings` are the varied keys with their values, as texts. `name` is the name of the trial's folder. `repeats` are the keys among
    the settings over whose values means are taken: the fold and the seed."""

    name: str
    settings: dict
    repeats: tuple

    def words(self):
        """Returns the arguments that set the keys."""
        return [word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")]

    def group(self):
        """Returns the settings without the fold and the seed."""
        return {key: value for key, value in self.settings.items() if key not in self.repeats}


def make_trials(varied, folds, seeds):
    """Returns all combinations. `varied`: texts such as KEY=VALUE,VALUE. `folds` and `seeds` are counts, or None."""
    values = {}
    for text in varied:
        key, equals, rest = text.partition("=")
        if not key or not equals:
            raise Mistake(f"--vary '{text}' is not KEY=VALUE,VALUE,...; write --vary training.optimizer.learning_rate=0.1,0.01")
        if key in values:
            raise Mistake(f"--vary names {key} twice; give all its values at once, with commas between them")
        values[key] = list_of(text, rest)
    repeats = {"data.fold": range(folds or 0), "training.seed": range(1, (seeds or 0) + 1)}
    refuse(values, "output.dir", "each trial has a folder of its own in --out")
    refuse(values, "data.folds", "--folds gives the number of folds")
    for key, numbers in repeats.items():
        if numbers:
            refuse(values, key, "--folds and --seeds give its values")
            values[key] = [str(number) for number in numbers]
    if not values:
        raise Mistake("there is one trial; give --vary, --folds or --seeds, or start the program itself")
    count = math.prod(map(len, values.values()))
    if count > MOST_TRIALS:
        raise Mistake(f"there are {count:,} combinations, and a sweep has at most {MOST_TRIALS:,} trials; give fewer values")
    names = short_keys(list(values))
    combinations = (dict(zip(values, combination)) for combination in itertools.product(*values.values()))
    return [Trial(name_of(names, settings), settings, tuple(repeats)) for settings in combinations]


def refuse(values, key, why):
    if key in values:
        raise Mistake(f"--vary names {key}, but {why}; leave it out")


def list_of(text, rest):
    """Divides at commas outside of brackets and quotes, so that a value may be a section: {name: adam, learning_rate: 0.01}."""
    values, depth, quote = [""], 0, ""
    for letter in rest:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += not quote and (letter in "[{") - (letter in "]}")
        if letter == "," and not quote and depth == 0:
            values.append("")
        else:
            values[-1] += letter
    if "" in values:
        raise Mistake(f"--vary '{text}' has an empty value; write KEY=VALUE,VALUE,...")
    if len(set(values)) < len(values):
        raise Mistake(f"--vary '{text}' has a value twice; leave one out")
    return values


def short_keys(keys):
    """Returns the last part of each key, or the whole key if another one ends alike."""
    ends = [key.rpartition(".")[2] for key in keys]
    return {key: end if ends.count(end) == 1 else key for key, end in zip(keys, ends)}


def name_of(names, settings):
    """Returns a name for a folder. One that had to be changed ends in a hash of the settings, so that no two names are equal."""
    text = ",".join(f"{names[key]}={value}" for key, value in settings.items())
    name = re.sub(r"[^\w.+=,-]", "_", text, flags=re.ASCII)[:LONGEST_NAME]
    return name if name == text else f"{name}-{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()[:8]}"
