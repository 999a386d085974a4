"""Reads the last events of a run's ranks. training/files/event_file.h describes the files, core/base/events.h
the events."""

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
SECONDS_OF_NEWS = 120  # seconds for which a network file system may delay what another machine has written
FILE_BYTES = 64 << 10
HEADER_BYTES = 512
BUCKETS, BUCKET_BYTES = 32, 128
SLOTS_AT = HEADER_BYTES + BUCKETS * BUCKET_BYTES
SLOT = struct.Struct("<QqqIi480s")
SLOTS = (FILE_BYTES - SLOTS_AT) // SLOT.size
MOST_RANKS = 10_000  # the names of the files have four digits
LATE_BEAT = 60 * 10**9  # nanoseconds for which a busy machine may keep a rank from updating its beat

# `faults` maps the path of each file that could not be read as a rank's events to a sentence that says why.
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
    """Returns the value of Header::place of processes that share this machine and this namespace of process
    ids."""
    return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip() + " " + os.readlink("/proc/self/ns/pid")


def oom_kills():
    lines = (line.split() for line in pathlib.Path("/proc/vmstat").read_text().splitlines())
    return next((int(count) for name, count in lines if name == "oom_kill"), 0)


class Rank:
    """The contents of one rank's event file. Times are nanoseconds since 1970."""

    is_over = False  # true if the process is known to have ended

    def __init__(self, file):
        # Reads the file twice. A slot that differs was being written.
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
        """Reads the header. Returns two times by the rank's monotonic clock: its start, and when it last
        continued after the death of other ranks."""
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
        """Returns the rank as its file showed it at this time."""
        then = copy.copy(self)
        then.events = [event for event in self.events if event.time <= moment]
        then.count -= len(self.events) - len(then.events)
        begun = then.last(Kind.STEP)
        then.step = begun.number if begun else self.step
        return then

    def activity(self):
        """Returns what the main thread does or did last: kind, name and start time. The kind is NOTHING while
        the thread itself computes."""
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
        """True if the rank waits to replace a rank that dies, or waited for that until the run ended."""
        last = self.last(Kind.SPARE)
        return last is not None and last.number == 1

    @property
    def is_cut_off(self):
        """True if the rank has ended because it could not reach the ranks that continue."""
        last = self.last(Kind.ERROR, Kind.ECHO)
        return last is not None and "cut off from the others" in last.text

    @property
    def is_starting(self):
        return self.count <= len(self.events) and not self.last(Kind.READY)

    @property
    def has_ended(self):
        """True if the rank has ended by itself. A rank that a signal killed has not."""
        return self.last(Kind.ERROR, Kind.ECHO, Kind.LOST, Kind.EXIT, Kind.END) is not None

    @property
    def last_sign(self):
        return max([self.wall_time + self.beat * 10**9, *(event.time for event in self.events[-1:])])

    @property
    def is_here(self):
        return self.place == own_place()

    def process_state(self):
        """Returns the state letter of proc(5), or "" if the process is gone. On another machine, returns "R"
        while the rank's last sign of life is recent."""
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
    """Opens the event file of a rank. Refuses anything but a regular file, because reading from a pipe would
    block."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"'{path}' is not a regular file")
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))


def read_ranks(folder):
    """Returns the ranks of the newest run with events in the folder or in its subfolder "events", and faulty
    files."""
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
            os.listdir(part)  # glob() ignores a lack of permission; listdir() raises PermissionError
    return Found(of_newest_run(ranks), faults)


def read_removed_ranks(folder):
    """Like read_ranks(), for files that were removed but that a process on this machine still has open."""
    name = re.compile(re.escape(str(folder.resolve())) + r"/(events/)?rank-\d{4} \(deleted\)")
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # the process belongs to another user, or ends meanwhile
            for link in (process / "fd").iterdir():
                if name.fullmatch(os.readlink(link)):
                    with contextlib.suppress(ValueError), open_events(link) as file:
                        rank = Rank(file)
                        # The launcher has the file open, too, so a rank may be found twice.
                        found[rank.job, rank.rank] = rank
    return of_newest_run([found[key] for key in sorted(found)])


def of_newest_run(ranks):
    newest = max(ranks, key=lambda rank: rank.wall_time, default=None)
    # Runs without a launcher have equal names of jobs, so ranks beyond the newest run's number are left out.
    return [rank for rank in ranks if rank.job == newest.job and (rank.rank < newest.ranks or newest.ranks == 0)]
