"""Decides whether mpirun is started again, from which checkpoint, and with how many ranks."""

import signal

from hosts import ranks_without

MISTAKE = 2  # exit status for errors that the user has to fix
# The exit statuses after which another start would not help.
FINAL = (0, MISTAKE, 128 + signal.SIGINT, 128 + signal.SIGTERM)


def resuming(program):
    """Returns the command line that resumes from the newest checkpoint. Drops --weights, as the checkpoint
    has its own."""
    words, rest = [], iter(program)
    for word in rest:
        if word in ("--weights", "--skip"):
            next(rest, None)
        elif word != "--replace" and not word.startswith(("--weights=", "--skip=")):
            words.append(word)
    return words if "--resume" in words else [*words, "--resume"]


def ranks_and_spares(ranks, spares):
    return f"{ranks - spares} ranks" + (f" and {spares} spare{'s' if spares > 1 else ''}" if spares else "")


class Starts:
    """The series of starts of one run. `training` is how many of the wanted ranks train. `limit` is the
    number of restarts after failures; with --rejoin it counts failures in a row without a new checkpoint."""

    def __init__(self, program, training, spares, hosts, limit, rejoins):
        self.program, self.training, self.hosts, self.limit, self.rejoins = program, training, hosts, limit, rejoins
        self.wanted = self.ranks = training + spares
        self.gone = []  # hosts that did not answer
        self.failures = 0
        self.are_seen = not hosts  # true if the ranks' events can be read here
        self.has_begun = bool(hosts)

    @property
    def spares(self):
        return max(self.ranks - self.training, 0)  # the first ranks train

    @property
    def hosts_left(self):
        return [host for host in self.hosts if host not in self.gone]

    def note_end(self, job):
        """Records the end of a start. `job` is the start that has just ended."""
        self.has_saved = any(rank.saved for rank in job.ranks)
        self.failures = 0 if job.has_made_room else 1 if self.rejoins and self.has_saved else self.failures + 1
        self.has_begun = self.has_begun or bool(job.ranks)
        self.are_seen = self.are_seen or job.has_seen_ranks

    def is_last(self, job, status):
        is_over = status in FINAL and not job.has_made_room
        return is_over or self.failures > self.limit or not self.has_begun

    def refusal(self, job, gone):
        """Returns why there is no restart although one would be due, or "". `gone` lists the hosts that do
        not answer."""
        if not self.has_saved and "--resume" not in self.program and job.may_have_saved():
            return (f"it is not started again, because only {len(job.ranks)} of {job.started} ranks are visible from here, and the others may have "
                    "saved a checkpoint; to continue from that, start the run with --resume")
        return "no host answers any more" if self.hosts and gone == self.hosts else ""

    def prepare(self, job, gone):
        """Prepares the next start, and returns the sentence that announces it."""
        self.program = resuming(self.program) if self.has_saved else self.program
        self.gone, self.ranks = gone, ranks_without(gone, self.hosts, self.wanted)
        cause, count = ("", "") if job.has_made_room else (f"{job.cause}; ", f" (restart {self.failures} of {self.limit})")
        place = "the last checkpoint" if "--resume" in self.program else "the beginning"
        without = f" without {', '.join(host.name for host in gone)}" if gone else ""
        return f"{cause}starting again from {place} with {ranks_and_spares(self.ranks, self.spares)}{without}{count}"
