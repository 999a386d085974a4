"""Says in one sentence what a run does, or how it ended, from the last events of its ranks."""

import collections
import re
import signal
import time

from events import Kind, oom_kills

Verdict = collections.namedtuple("Verdict", "kind rank step sentence")

SECOND = 10**9
PATIENCE = 5  # seconds for which a rank may wait for samples before its loader is called slow
QUIET = 2.5  # seconds without a beat (there is one a second) after which a process counts as stopped

# The kinds of errors. The first pattern that matches the message determines the kind.
ERRORS = [("out of memory", r"out of memory|which may have .* MB together|was asked for .* of memory|needs \d+ bytes, and (this machine|there)|no memory for it"),
          ("disk full", r"No space left on device|no inodes left|Disk quota exceeded|File too large"),
          ("mismatch", r"the ranks differ in|all ranks must make the same calls"),
          ("start-up", r"has waited .* in MPI_Init"),
          ("exception", r"")]
DOING = {Kind.NOTHING: "computing", Kind.DATA: "waiting for samples", Kind.PHASE: "at {}", Kind.WAIT: "in {} with the other ranks"}


def name(rank):
    return f"rank {rank.rank} on {rank.host}"


def list_ranks(numbers):
    words = [str(number) for number in sorted(numbers)]
    return f"rank {words[0]}" if len(words) == 1 else f"ranks {', '.join(words[:-1])} and {words[-1]}"


def place(rank):
    """Says where the rank's main thread is, or was last."""
    if rank.is_spare:
        return "as a spare"
    kind, text, _ = rank.activity()
    step = "as a server" if rank.serves else f"in step {rank.step}" if rank.step else "in start-up" if rank.is_starting else "before the first step"
    return f"{step}, {DOING[kind].format(call(rank, text))}"


def call(rank, text):
    """Returns the name of a call in quotes, and the tensors of the bucket if it names one."""
    bucket = re.match(r"bucket (\d+) of ", text)
    names = rank.buckets[int(bucket[1])] if bucket and int(bucket[1]) < len(rank.buckets) else ""
    return f"'{text}' ({names})" if names else f"'{text}'"


def age(since):
    return max(0.0, (time.time_ns() - since) / SECOND)


def of(kind, rank, sentence):
    return Verdict(kind, rank.rank, rank.step, sentence)


def of_error(rank, event):
    kind = next(kind for kind, pattern in ERRORS if re.search(pattern, event.text))
    step = f" in step {rank.step}" if rank.step else ""
    return of(kind, rank, f"{name(rank)} ended{step} with the error: {event.text}")


def of_stop(rank, moment):
    then = rank.until(moment)
    return of("stopped", then, f"{name(rank)} was stopped {place(then)}, until the other ranks gave it up")


def of_own_error(ranks, rank, event):
    """Returns the verdict for a rank that ended with an error of its own. A rank that fails in MPI_Init does
    not know which rank it waited for, so a stopped rank is looked for."""
    verdict = of_error(rank, event)
    stopped = [other for other in ranks if other.is_starting and was_stopped(other, event.time)]
    return of_stop(stopped[0], event.time) if verdict.kind == "start-up" and stopped else verdict


def of_exit(rank, event):
    return of("exit", rank, f"{name(rank)} was left by exit({event.number}) {place(rank)}")


def of_death(rank):
    # Each machine counts its own out-of-memory kills, so this is known only for this machine.
    if rank.is_here and oom_kills() > rank.oom_kills:
        return of("out of memory", rank, f"{name(rank)} was killed {place(rank)}, and the system has killed for want of memory since it started")
    asked = rank.last(Kind.SIGNAL)
    if asked:
        return of("signal", rank, f"{name(rank)} was asked to end by {signal.Signals(asked.number).name}, and was killed {place(rank)}")
    return of("killed", rank, f"{name(rank)} was killed, or crashed, {place(rank)}")


def was_stopped(rank, moment):
    """Returns true if the rank's process was stopped at this time. A stopped process records the pause when
    it continues, and mpirun lets it continue before it ends it."""
    pauses = [event for event in rank.events if event.kind == Kind.PAUSED]
    return ((moment - rank.until(moment).last_sign) / SECOND > QUIET or rank.process_state() in ("T", "t")
            or any(event.time - event.number * SECOND < moment < event.time + SECOND for event in pauses))


def of_loss(ranks, reporter, event):
    """Returns the verdict if other ranks have given up a rank: the reason why that rank did not answer."""
    rank = next((rank for rank in ranks if rank.rank == event.number), None)
    if rank is None:
        return Verdict("dropped link" if "the link" in event.text else "lost", event.number, reporter.step, event.text)
    if rank.last(Kind.EXIT):
        return of_exit(rank, rank.last(Kind.EXIT))
    if "has died" in event.text:
        return of_death(rank)
    then = rank.until(event.time)
    if was_stopped(rank, event.time):
        return of_stop(rank, event.time)
    if rank.last(Kind.LOST, Kind.ECHO) and rank.host != reporter.host:
        return of("dropped link", then, f"{name(rank)} and {name(reporter)} did not reach each other: {event.text}")
    kind = "slow loader" if then.activity()[0] == Kind.DATA else "stuck"
    return of(kind, then, f"{name(rank)} was {place(then)}, until the other ranks gave it up")


def after(step):
    return f"after step {step}" if step else "without a step"


def of_end(ranks):
    """Returns the verdict if all ranks have ended and none has an error of its own."""
    statuses = {rank.last(Kind.END).number for rank in ranks}
    first = max(ranks, key=lambda rank: rank.step)  # the highest step, as serving ranks make no steps
    echo = first.last(Kind.ECHO)
    if statuses == {0}:
        return Verdict("finished", None, first.step, f"{list_ranks(rank.rank for rank in ranks)} ended with exit status 0 {after(first.step)}")
    if echo:
        return of_error(first, echo)
    asked = next((rank for rank in ranks if rank.last(Kind.SIGNAL)), None)
    if asked is None:
        return of("exception", first, f"{list_ranks(rank.rank for rank in ranks)} ended with exit status {max(statuses)} {after(first.step)}")
    word = signal.Signals(asked.last(Kind.SIGNAL).number).name
    return Verdict("signal", asked.rank, first.step, f"{name(asked)} was asked to end by {word}, and all ranks ended {after(first.step)}")


def waiting_share(rank):
    """Returns the share of the time since the oldest known event in which the main thread waited for samples.
    """
    events = [event for event in rank.events if event.thread == rank.process]
    if not events:
        return 0
    waited = sum(after.time - event.time for event, after in zip(events, events[1:]) if event.kind == Kind.DATA)
    return waited / max(events[-1].time - events[0].time, SECOND)


def of_living(ranks):
    ranks = [rank for rank in ranks if not rank.is_spare] or ranks
    others = [rank for rank in ranks if rank.activity()[0] != Kind.WAIT and not rank.last(Kind.END)] or ranks
    slowest = min(others, key=lambda rank: rank.activity()[2])
    kind, _, since = slowest.activity()
    if kind == Kind.DATA and age(since) > PATIENCE or waiting_share(slowest) > 0.5:
        seconds = f"for {age(since):.0f} s" if age(since) > 1 else f"for {waiting_share(slowest):.0%} of the time"
        return of("slow loader", slowest, f"{name(slowest)} waits for samples {seconds}, in step {slowest.step}")
    if age(since) < 1:
        step = max(rank.step for rank in ranks)
        return Verdict("running", None, step, f"{list_ranks(rank.rank for rank in ranks)} at step {step}")
    return of("running", slowest, f"{name(slowest)} has been {place(slowest)} for {age(since):.0f} s")


def missing_of(ranks, unread):
    return set(range(max(rank.ranks for rank in ranks))) - {rank.rank for rank in ranks} - unread


def of_missing(missing, rest):
    return Verdict("start-up", min(missing), 0, f"{list_ranks(missing)} did not start, or not with this folder as output; {rest}")


def of_start(ranks, unread):
    missing = missing_of(ranks, unread)
    slowest = ranks[0] if missing else next(rank for rank in ranks if rank.is_starting)
    waiting = f"{name(slowest)} has been {place(slowest)} for {age(slowest.activity()[2]):.0f} s"
    return of_missing(missing, waiting) if missing else of("start-up", slowest, waiting)


def those_lost(ranks):
    """Returns the ranks that were dead when others last continued without a dead rank."""
    went_on = max((rank.survived for rank in ranks), default=0)
    return [rank for rank in ranks if rank.last_sign < went_on and rank.survived < went_on and not rank.process_state()]


def those_cut_off(ranks):
    """Returns the ranks that lost contact to others which continued. Ranks that continued once and died later
    do not count among the others."""
    found, lost = [rank for rank in ranks if rank.is_cut_off], those_lost(ranks)
    return found if any(rank.survived for rank in ranks if rank not in found and rank not in lost) else []


def spares_lost(ranks):
    """Returns the spares that died without effect: all training ranks have ended with status 0."""
    others = [rank for rank in ranks if not rank.is_spare]
    have_finished = others and all(end and end.number == 0 for end in (rank.last(Kind.END) for rank in others))
    return [rank for rank in ranks if have_finished and rank.is_spare and not rank.has_ended and not rank.process_state()]


def judge(ranks, unread=frozenset()):
    """Returns the verdict on a run. `ranks` has at least one rank. `unread` has the numbers of the ranks that
    have started, but whose files cannot be read."""
    cut_off = those_cut_off(ranks)
    dead = [rank for rank in those_lost(ranks) if rank not in cut_off]
    left = [rank for rank in ranks if rank not in dead and rank not in cut_off]
    spares_that_died = spares_lost(left)
    left = [rank for rank in left if rank not in spares_that_died]
    verdict = of_those_left(left, unread)
    remarks = [verdict.sentence]
    spares = [rank for rank in left if rank.is_spare and rank.rank != verdict.rank]
    if spares:
        words = ("was a spare", "were spares") if all(rank.last(Kind.END) for rank in spares) else ("is a spare", "are spares")
        remarks.append(f"{list_ranks(rank.rank for rank in spares)} {words[len(spares) > 1]}")
    if spares_that_died:
        remarks.append(f"{list_ranks(rank.rank for rank in spares_that_died)} died as {'spares' if len(spares_that_died) > 1 else 'a spare'}")
    if dead:
        remarks.append(f"{list_ranks(rank.rank for rank in dead)} died before, and the others continued")
    if cut_off:
        remarks.append(f"{list_ranks(rank.rank for rank in cut_off)} {'were' if len(cut_off) > 1 else 'was'} cut off, and the others continued")
    return verdict._replace(sentence="; ".join(remarks))


def of_those_left(ranks, unread):
    ends = [(event.time, rank, event) for rank in ranks for event in rank.events if event.kind in (Kind.ERROR, Kind.LOST, Kind.EXIT)]
    if ends:
        _, rank, event = min(ends, key=lambda end: end[0])
        if event.kind == Kind.EXIT:
            return of_exit(rank, event)
        return (of_own_error if event.kind == Kind.ERROR else of_loss)(ranks, rank, event)
    at_work = [rank for rank in ranks if not rank.last(Kind.END)]
    if not at_work:
        return of_end(ranks)
    stopped = [rank for rank in at_work if rank.process_state() in ("T", "t")]
    if stopped:
        return of("stopped", stopped[0], f"{list_ranks(rank.rank for rank in stopped)} on {stopped[0].host} is stopped {place(stopped[0])}")
    dead = [rank for rank in at_work if not rank.process_state()]
    if dead:
        death, missing = of_death(min(dead, key=lambda rank: rank.last_sign)), missing_of(ranks, unread)
        # A rank that does not start is the cause if all are starting: the launcher ends the ranks that wait
        # for it.
        return of_missing(missing, death.sentence) if missing and all(rank.is_starting for rank in ranks) else death
    return of_start(ranks, unread) if any(rank.is_starting for rank in ranks) else of_living(ranks)
