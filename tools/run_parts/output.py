"""What mpirun prints, on its way to whoever reads the output of tools/run. mpirun ends its ranks when nobody reads its own output any more."""

import os
import select
import time

from printing import PATIENCE

PIECE = select.PIPE_BUF  # bytes: a pipe that takes any takes so many without waiting


def is_same_file(one, other):
    try:
        return os.path.samestat(os.fstat(one), os.fstat(other))
    except OSError:  # it is closed
        return False


class Output:
    """Pipes of one start of mpirun. Its output and its errors share one where they go to the same place, which keeps their order.
    `signals` are empty as long as the run is not asked to end; so long a reader has all the time that it wants."""

    def __init__(self, signals):
        self.signals, self.moved_at = signals, time.monotonic()
        self.stream_of = {}  # by the end of each pipe that is read here
        self.held = {}  # the same, with what is still to be written
        self.written_by_child = []
        for stream in (1, 2):
            if stream == 2 and is_same_file(1, 2):
                self.written_by_child.append(self.written_by_child[0])
                break
            end, other = os.pipe()
            self.stream_of[end], self.held[end] = stream, b""
            self.written_by_child.append(other)

    def of_child(self):
        """Arguments of subprocess.Popen(). The child holds the ends for reading, too: it shall outlive this process, and save."""
        stdout, stderr = self.written_by_child
        return {"stdout": stdout, "stderr": stderr, "pass_fds": tuple(self.held)}

    def has_started(self):
        for end in set(self.written_by_child):
            os.close(end)

    def pass_on(self, seconds):
        """What comes within this time, which it takes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.step(left)

    def finish(self):
        """To be called when whoever has written is gone."""
        while self.step(0) or any(self.held.values()):
            self.step(PATIENCE / 10)
        for pipe in self.held:
            os.close(pipe)

    def step(self, seconds):
        """Waits so long at most for something to do. Whether there was."""
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
            self.give_up(waiting)  # mpirun would wait, too, and not end
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
        except OSError:  # nobody is there to read, or there is no room
            self.give_up([self.stream_of[pipe]])
