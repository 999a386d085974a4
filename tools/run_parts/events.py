"""Reads the last events of the ranks of a run. training/files/event_file.h describes the files, core/base/events.h the events."""

import collections
import contextlib
import copy
import enum
import functools
import os
import pathlib
import re
import signal
import stat
import struct
import time

HEADER = struct.Struct("<8sIIii8qQ64s128s64s3q")
SECONDS_OF_NEWS = 120  # that a file system may keep back what another machine has written
FILE_BYTES = 64 << 10
HEADER_BYTES = 512
BUCKETS, BUCKET_BYTES = 32, 128
SLOTS_AT = HEADER_BYTES + BUCKETS * BUCKET_BYTES
SLOT = struct.Struct("<QqqIi480s")
SLOTS = (FILE_BYTES - SLOTS_AT) // SLOT.size
MOST_RANKS = 10_000  # the files have numbers of four digits
LATE_BEAT = 60 * 10**9  # nanoseconds that a machine which is busy may keep a rank from counting

# `faults`: what is wrong with the files that tell of no rank, by their paths.
Found = collections.namedtuple("Found", "ranks faults")


class Kind(enum.IntEnum):
    NOTHING, START, READY, STEP, DATA, PHASE, WAIT, BACK, SAVED, ERROR, ECHO, LOST, SIGNAL, EXIT, END, PAUSED, BUCKET, SURVIVED, SPARE, SERVES = range(20)


class Event:
    def __init__(self, sequence, time, number, kind, thread, text):
        self.sequence, self.time, self.number, self.kind, self.thread = sequence, time, number, Kind(kind), thread
        self.text = plain(text)


def plain(text):
    return text.split(b"\0")[0].decode(errors="surrogateescape")


@functools.cache
def own_place():
    """What a process writes as Header::place that is seen here under its number."""
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip() + " " + os.readlink("/proc/self/ns/pid")


def oom_kills():
    lines = (line.split() for line in pathlib.Path("/proc/vmstat").read_text().splitlines())
    return next((int(count) for name, count in lines if name == "oom_kill"), 0)


class Rank:
    """What the file of one rank says. Times are nanoseconds since 1970."""

    is_over = False  # its process is known to be gone

    def __init__(self, file):
        # Who writes meanwhile changes a slot between the two looks.
        looks = [os.pread(file.fileno(), FILE_BYTES, 0) for _ in range(2)]
        self.file = file.name
        if any(len(look) < FILE_BYTES for look in looks):
            raise ValueError(f"'{self.file}' is cut off: it has fewer than {FILE_BYTES} bytes")
        start, survived = self.read_header(looks[1])
        self.buckets = [plain(looks[1][i:i + BUCKET_BYTES]) for i in range(HEADER_BYTES, SLOTS_AT, BUCKET_BYTES)]
        self.events = sorted(self.read_events(looks, self.wall_time - start), key=lambda event: event.sequence)
        self.survived = survived + self.wall_time - start if survived else 0
        if survived and not self.wall_time <= self.survived <= self.last_sign + LATE_BEAT:
            self.fail("it has gone on without others at a time at which it did not run")

    def fail(self, why):
        raise ValueError(f"'{self.file}' is damaged: {why}")

    def read_header(self, look):
        """Returns the times by another clock: of the start, and when it last went on without others."""
        (magic, version, slots, self.rank, self.ranks, self.process, self.process_start, self.wall_time, start,
         self.oom_kills, self.beat, self.step, self.saved, self.count, host, place, job, survived, self.left, self.serves) = HEADER.unpack_from(look)
        if magic != b"PLXEVENT" or version != 1 or slots != SLOTS:
            raise ValueError(f"'{self.file}' holds no events that this version of Plexaura has written")
        if not (0 <= self.rank < MOST_RANKS and 0 <= self.ranks <= MOST_RANKS):
            self.fail(f"a run has at most {MOST_RANKS} ranks")
        self.host, self.place, self.job = plain(host), plain(place), plain(job)
        return start, survived

    def read_events(self, looks, to_wall_time):
        for i in range(SLOTS):
            first, second = (SLOT.unpack_from(look, SLOTS_AT + i * SLOT.size) for look in looks)
            if first == second and first[0] > 0:
                sequence, moment, number, kind, thread, text = first
                if kind >= len(Kind) or (kind == Kind.BACK and not 0 <= number < len(Kind)):
                    self.fail("it has an event of an unknown kind")
                if kind == Kind.SIGNAL and number not in signal.valid_signals():
                    self.fail("it has an event of an unknown signal")
                yield Event(sequence, moment + to_wall_time, number, kind, thread, text)

    def last(self, *kinds):
        return next((event for event in reversed(self.events) if event.kind in kinds), None)

    def until(self, moment):
        """What the file said at that time."""
        then = copy.copy(self)
        then.events = [event for event in self.events if event.time <= moment]
        then.count -= len(self.events) - len(then.events)
        begun = then.last(Kind.STEP)
        then.step = begun.number if begun else self.step
        return then

    def activity(self):
        """What the main thread does, or did last: kind, name and since when; NOTHING for its own computation."""
        for event in reversed(self.events):
            if event.thread != self.process or event.kind > Kind.BACK:
                continue
            if event.kind == Kind.BACK:
                return Kind(event.number), event.text, event.time
            inside = event.kind in (Kind.DATA, Kind.PHASE, Kind.WAIT)
            return (event.kind if inside else Kind.NOTHING), event.text, event.time
        return Kind.NOTHING, "", self.wall_time

    @property
    def is_spare(self):
        """Waits, or waited until the run ended, for a rank to die whose place it takes."""
        last = self.last(Kind.SPARE)
        return last is not None and last.number == 1

    @property
    def is_cut_off(self):
        """Has ended because it did not reach the ranks that go on."""
        last = self.last(Kind.ERROR, Kind.ECHO)
        return last is not None and "cut off from the others" in last.text

    @property
    def is_starting(self):
        return self.count <= len(self.events) and not self.last(Kind.READY)

    @property
    def has_ended(self):
        """By itself, and not by a signal that kills."""
        return self.last(Kind.ERROR, Kind.ECHO, Kind.LOST, Kind.EXIT, Kind.END) is not None

    @property
    def last_sign(self):
        return max([self.wall_time + self.beat * 10**9, *(event.time for event in self.events[-1:])])

    @property
    def is_here(self):
        return self.place == own_place()

    def process_state(self):
        """A letter of proc(5), or "" where the process is gone. On other machines what its beat tells."""
        if self.is_over:
            return ""
        if not self.is_here:
            return "R" if time.time_ns() - self.last_sign < SECONDS_OF_NEWS * 10**9 else ""
        try:
            fields = pathlib.Path(f"/proc/{self.process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return ""
        return "" if int(fields[19]) != self.process_start or fields[0] in "ZX" else fields[0]


def open_events(path):
    """Of a rank. Nothing but a regular file is opened: a pipe would be waited for."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"'{path}' is no regular file")
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def read_ranks(folder):
    """What is found of the newest run that has kept its events in the folder, or in its folder "events"."""
    ranks, faults, unread = [], {}, None
    for path in sorted((*folder.glob("events/rank-????"), *folder.glob("rank-????"))):
        try:
            with open_events(path) as file:
                ranks.append(Rank(file))
        except ValueError as error:
            faults[path] = str(error)
        except OSError as error:
            unread, faults[path] = error, f"'{path}' cannot be read: {error.strerror}"
    if not ranks and isinstance(unread, PermissionError):
        raise unread
    for part in () if ranks or faults else (folder, folder / "events"):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.listdir(part)  # raises PermissionError where glob() finds nothing for want of a permission
    return Found(of_newest_run(ranks), faults)


def read_removed_ranks(folder):
    """The same where the files were removed: those that a process at work here still holds."""
    name = re.compile(re.escape(str(folder.resolve())) + r"/(events/)?rank-\d{4} \(deleted\)")
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is another user's, or ends meanwhile
            for link in (process / "fd").iterdir():
                if name.fullmatch(os.readlink(link)):
                    with contextlib.suppress(ValueError), open_events(link) as file:
                        rank = Rank(file)
                        found[rank.job, rank.rank] = rank  # the launcher holds it, too
    return of_newest_run([found[key] for key in sorted(found)])


def of_newest_run(ranks):
    newest = max(ranks, key=lambda rank: rank.wall_time, default=None)
    # Runs that no launcher has started do not differ in their job.
    return [rank for rank in ranks if rank.job == newest.job and (rank.rank < newest.ranks or newest.ranks == 0)]
