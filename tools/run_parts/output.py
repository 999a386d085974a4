"""Copies the output of mpirun to the output of tools/run. If mpirun wrote there directly, it would end its
ranks when the reader goes away."""

import os
import select
import time

from printing import PATIENCE

PIECE = select.PIPE_BUF  # bytes that a pipe always accepts at once if it accepts any


def is_same_file(one, other):
    try:
        return os.path.samestat(os.fstat(one), os.fstat(other))
    except OSError:  # the stream is closed
        return False


class Output:
    """The output pipes of one start of mpirun. If its output and its errors go to the same place, they share
    one pipe, which keeps their order. While `signals` is empty, a slow reader may take any time."""

    def __init__(self, signals):
        self.signals, self.moved_at = signals, time.monotonic()
        self.stream_of = {}  # stream by pipe that is read here
        self.held = {}  # by pipe, the text that is still to be written
        self.written_by_child = []
        for stream in (1, 2):
            if stream == 2 and is_same_file(1, 2):
                self.written_by_child.append(self.written_by_child[0])
                break
            end, other = os.pipe()
            self.stream_of[end], self.held[end] = stream, b""
            self.written_by_child.append(other)

    def of_child(self):
        """Returns arguments of subprocess.Popen(). The child also inherits the reading ends, so that it can
        still write, and save, after this process has died."""
        stdout, stderr = self.written_by_child
        return {"stdout": stdout, "stderr": stderr, "pass_fds": tuple(self.held)}

    def has_started(self):
        for end in set(self.written_by_child):
            os.close(end)

    def pass_on(self, seconds):
        """Copies output for this many seconds."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.step(left)

    def finish(self):
        """Copies what is left in the pipes. Call it when mpirun and the ranks have ended."""
        while self.step(0) or any(self.held.values()):
            self.step(PATIENCE / 10)
        for pipe in self.held:
            os.close(pipe)

    def step(self, seconds):
        """Waits at most this many seconds, then reads or writes once. Returns true if there was anything to
        do."""
        waiting = [self.stream_of[pipe] for pipe, text in self.held.items() if text]
        readable, writable, _ = select.select([pipe for pipe, text in self.held.items() if not text], waiting, [], seconds)
        for pipe in list(self.held):
            if pipe in readable:
                self.read(pipe)
            elif self.stream_of[pipe] in writable:
                self.write(pipe)
        if readable or writable or not self.signals:
            self.moved_at = time.monotonic()
        elif time.monotonic() - self.moved_at > PATIENCE:
            self.give_up(waiting)  # otherwise mpirun would wait for the reader, too, and not end
        return bool(readable or writable)

    def give_up(self, streams):
        for pipe, stream in self.stream_of.items():
            if stream in streams:
                self.stream_of[pipe], self.held[pipe] = None, b""

    def read(self, pipe):
        text = os.read(pipe, PIECE)
        if not text:
            os.close(pipe)
            del self.held[pipe], self.stream_of[pipe]
        elif self.stream_of[pipe] is not None:
            self.held[pipe] = text

    def write(self, pipe):
        try:
            written = os.write(self.stream_of[pipe], self.held[pipe])
            self.held[pipe] = self.held[pipe][written:]
        except BlockingIOError:  # another program has filled the pipe meanwhile
            pass
        except OSError:  # the reader is gone, or the disk is full
            self.give_up([self.stream_of[pipe]])
