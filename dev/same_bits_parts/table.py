"""Reads the table of configurations; its head describes it."""

import dataclasses
import re
import shlex

from tool import Mistake

ALL = ("checkpoint", "calls", "results", "program")
ASPECTS = (*ALL, "messages")
RUN = re.compile(r"train|predict|graph|resume@\d+|(kill|survive)@\d+:\d+")
VARIABLE = re.compile(r"[A-Z_0-9]+=")


@dataclasses.dataclass
class Row:
    text: str
    ranks: int
    model: str
    run: str
    aspects: tuple
    settings: list

    @property
    def kind(self):
        return self.run.partition("@")[0]

    @property
    def numbers(self):
        """Returns the numbers in RUN: a step, or a rank and a step."""
        return [int(number) for number in re.findall(r"\d+", self.run)]

    @property
    def environment(self):
        return dict(word.split("=", 1) for word in self.settings if VARIABLE.match(word))

    @property
    def arguments(self):
        """Returns the options of the program. A word after an option is its value, whatever it looks like."""
        arguments, is_value = [], False
        for word in self.settings:
            if word.startswith("--") or is_value:
                arguments.append(word)
            elif not VARIABLE.match(word):
                arguments += ["--set", word] if "=" in word else [word]
            is_value = word.startswith("--")
        return arguments

    @property
    def backend(self):
        words = self.settings
        return words[words.index("--backend") + 1].partition(":")[0] if "--backend" in words[:-1] else "cpu"


def read_table(path, models):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise Mistake(f"cannot read the table '{path}': {error.strerror}") from error
    rows = [read_row(line, f"{path}:{number}", models) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    if not rows:
        raise Mistake(f"the table '{path}' has no configuration; its lines are RANKS MODEL RUN COMPARED SETTINGS")
    return rows


def read_row(line, place, models):
    try:
        ranks, model, run, compared, *settings = shlex.split(line)
    except ValueError as error:
        raise Mistake(f"{place}: '{line}' is not a configuration: write RANKS MODEL RUN COMPARED SETTINGS, with quotes in pairs") from error
    if not re.fullmatch(r"[1-9]\d*", ranks):
        raise Mistake(f"{place}: '{ranks}' is not a number of ranks; write 1 or more")
    if not RUN.fullmatch(run):
        raise Mistake(f"{place}: there is no run '{run}'; write train, resume@N, kill@RANK:N, survive@RANK:N, predict or graph")
    if run != "graph" and model not in models:
        raise Mistake(f"{place}: there is no model '{model}'; there are {', '.join(models)}")
    aspects = ALL if compared == "all" else tuple(compared.split(","))
    for aspect in aspects:
        if aspect not in ASPECTS:
            raise Mistake(f"{place}: '{aspect}' cannot be compared; write all, or some of {', '.join(ASPECTS)} with commas between")
    return Row(" ".join(line.split()), int(ranks), model, run, aspects, settings)
