"""A stage of dev/gpu_check: it fills rows of a table, and has a time limit for all of them together."""

import dataclasses
import os
import signal
import subprocess
import time

# No row begins with less time left.
LEAST_SECONDS = 3


@dataclasses.dataclass
class Row:
    name: str
    result: str  # passed, FAILED, skipped or not run
    seconds: float = 0
    detail: str = ""
    figures: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Done:
    status: int  # 0: success
    output: str
    timed_out: bool
    seconds: float

    def last_line(self):
        lines = [line for line in self.output.splitlines() if line.strip()]
        return lines[-1] if lines else "no output"

    def why(self):
        """Returns why it failed. For a test program, this is the number of failed tests and the first error.
        """
        lines = self.output.splitlines()
        count = next((line for line in lines if line.startswith("[doctest] test cases:")), None)
        error = next((line.strip() for line in lines if "ERROR: " in line), None)
        return f"{' '.join(count.split())}; {error}" if count and error else self.last_line()


class Stage:
    def __init__(self, name, seconds, logs, environment, only=None):
        """`only` is a pattern for the names of the wanted rows; None wants all."""
        self.name = name
        self._only = only
        self.names = []  # names of all rows, wanted or not
        self.environment = environment
        self.rows = []
        self._logs = logs
        self._end = time.monotonic() + seconds

    def left(self):
        return self._end - time.monotonic()

    def passed(self):
        return (bool(self.rows) or self._only is not None) and all(row.result in ("passed", "skipped") for row in self.rows)

    def finds_nothing(self):
        """Returns true if `only` matches no row of this stage."""
        return self._only is not None and not self.rows

    def add(self, name, result, seconds=0.0, detail="", figures=None):
        self.rows.append(Row(name, result, seconds, detail, figures or {}))
        print(f"{name:<44} {result:<8} {seconds:6.1f} s  {detail}", flush=True)
        return result == "passed"

    def skip(self, name, why):
        if self.wants(name):
            self.add(name, "skipped", detail=why)

    def wants(self, name):
        self.names.append(name)
        return self._only is None or self._only.search(name) is not None

    def reaches(self, name):
        """Returns true if a row is wanted and there is time for it. If it is wanted but there is no time,
        adds a row that says so."""
        if not self.wants(name):
            return False
        if self.left() >= LEAST_SECONDS:
            return True
        self.add(name, "not run", detail="the time of the stage was over")
        return False

    def run(self, name, command, variables=None, at_most=None, cwd=None):
        """Runs a command with its output in a log, for at most the time that is left. Adds no row."""
        limit = max(self.left(), 0.1) if at_most is None else max(min(self.left(), at_most), 0.1)
        begin = time.monotonic()
        log = self._logs / f"{self.name}-{name.replace(' ', '_').replace('/', '_')}.log"
        with open(log, "wb") as sink:
            process = subprocess.Popen([str(word) for word in command], stdout=sink, stderr=subprocess.STDOUT, cwd=cwd,
                                       env={**self.environment, **(variables or {})}, start_new_session=True)
            timed_out = False
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                end_group(process)
        text = log.read_text(encoding="utf-8", errors="replace")
        return Done(process.returncode, text, timed_out, time.monotonic() - begin)

    def row(self, name, command, judge=None, **options):
        """Adds a row for a command. It fails if the command does not end with 0; otherwise `judge` returns
        result and detail from its output."""
        if not self.reaches(name):
            return None
        done = self.run(name, command, **options)
        if done.timed_out:
            self.add(name, "FAILED", done.seconds, "it was ended, for it took longer than it may")
        elif done.status != 0:
            self.add(name, "FAILED", done.seconds, f"status {done.status}: {done.why()}")
        else:
            result, detail = judge(done) if judge else ("passed", "")
            self.add(name, result, done.seconds, detail)
        return done


def end_group(process):
    """Kills the process and all that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
