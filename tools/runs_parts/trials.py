"""The trials of a sweep: which keys they vary, and the name of each."""

import dataclasses
import decimal
import hashlib
import itertools
import math
import re

from tool import Mistake

MOST_TRIALS = 10_000
LONGEST_NAME = 100  # characters of the name of a trial, which names a folder
CLOSES = {"[": "]", "{": "}"}
QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
# A number that is a value, or a value in a section or a list.
NUMBER = re.compile(r"(?<![^\[{,:\s])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,9})?(?![^\]},\s])", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Trial:
    """`settings` are the varied keys with their values, as texts. `name` is the name of the trial's folder. `repeats` are the keys
    over which means are taken, the fold and the seed, whether or not they are varied."""

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
    if max(folds or 0, seeds or 0) > MOST_TRIALS:
        raise Mistake(f"--folds and --seeds are at most {MOST_TRIALS:,}, the number of trials that a sweep may have; give fewer")
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
    for earlier, later in itertools.combinations(values, 2):
        if is_in(earlier, later):
            raise Mistake(f"--vary names {earlier} before {later}, which would replace it; name {later} first")
    combinations = (dict(zip(values, combination)) for combination in itertools.product(*values.values()))
    return [Trial(name_of(names, settings), settings, tuple(repeats)) for settings in combinations]


def refuse(values, key, why):
    if key in values:
        raise Mistake(f"--vary names {key}, but {why}; leave it out")


def is_in(key, section):
    """True if the key is a key in the section, such as a.b in a."""
    return key.startswith((f"{section}.", f"{section}["))


def refuse_replaced(command, keys):
    """Refuses a --set in the command that one of these keys of each trial would replace."""
    for before, word in zip(["", *command], command):
        if before != "--set" and not word.startswith("--set="):
            continue
        key = word.removeprefix("--set=").partition("=")[0]
        for own in keys:
            if key == own or is_in(key, own):
                raise Mistake(f"--set {key} in the command has no effect, because the sweep sets {own} for each trial; leave it out")


def list_of(text, rest):
    """Divides at commas outside of brackets and quotes, so that a value may be a section: {name: adam, learning_rate: 0.01}. As in YAML,
    a quote counts only at the beginning of a value: Men's is a text."""
    values, closing, before, at = [""], [], ",", 0
    while at < len(rest):
        letters = rest[at]
        if letters in "'\"" and before in ",[{:":
            quoted = QUOTED.match(rest, at)
            if not quoted:
                raise Mistake(f"--vary '{text}' has a quote that is not closed; close it, or write the quote within a value in quotes of the other kind")
            letters = quoted[0]
        elif letters in CLOSES:
            closing.append(CLOSES[letters])
        elif letters in "]}" and (not closing or closing.pop() != letters):
            raise Mistake(f"--vary '{text}' has a {letters} that closes nothing; open it before, or write the value in quotes")
        if letters == "," and not closing:
            values.append("")
        else:
            values[-1] += letters
        before = before if letters.isspace() else letters[-1]
        at += len(letters)
    if closing:
        raise Mistake(f"--vary '{text}' lacks a {closing[-1]} at its end; close the bracket, or write the value in quotes")
    if "" in values:
        raise Mistake(f"--vary '{text}' has an empty value; write KEY=VALUE,VALUE,...")
    known = {}
    for value in values:
        form = (tuple(NUMBER.split(value.strip())), tuple(map(decimal.Decimal, NUMBER.findall(value))))
        if form in known:
            raise Mistake(f"--vary '{text}' has a value twice: {known[form]} and {value}; leave one out")
        known[form] = value
    return values


def short_keys(keys):
    """Returns the last part of each key, or the whole key if another key ends in the same part."""
    ends = [key.rpartition(".")[2] for key in keys]
    return {key: end if ends.count(end) == 1 else key for key, end in zip(keys, ends)}


def name_of(names, settings):
    """Returns the name of a trial's folder. If letters had to be replaced or cut off, the name ends in a hash of the settings, so that no
    two names are equal."""
    text = ",".join(f"{names[key]}={value}" for key, value in settings.items())
    name = re.sub(r"[^\w.+=,-]", "_", text, flags=re.ASCII)[:LONGEST_NAME]
    return name if name == text else f"{name}-{hashlib.sha256(text.encode(errors='surrogateescape')).hexdigest()[:8]}"
