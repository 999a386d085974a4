"""Waits that are as long on a busy machine as on an idle one, counted in what a machine gives: tests fail by what is computed, not by the load."""

import os
import pathlib
import subprocess
import time


def slowness():
    """How many times longer than on an idle machine a test may take: the threads that want a core, for each core."""
    load, _, _, threads, _ = pathlib.Path("/proc/loadavg").read_text().split()
    return max(1.0, float(load) / os.cpu_count(), int(threads.split("/")[0]) / os.cpu_count())


def seconds(number):
    """As many as on an idle machine, for a deadline that the programs keep."""
    return round(number * slowness(), 1)


class Patience:
    """A time limit, in seconds of an idle machine."""

    def __init__(self, number):
        self.left, self.looked = number, time.monotonic()

    def is_over(self):
        now = time.monotonic()
        self.left -= (now - self.looked) / slowness()
        self.looked = now
        return self.left < 0


class PatientProcess(subprocess.Popen):
    """Its time limits are such, and so are those of subprocess.run()."""

    def wait(self, timeout=None):
        return self.patiently(super().wait, timeout)

    def communicate(self, input=None, timeout=None):
        call, words = super().communicate, [input]
        return self.patiently(lambda timeout=None: call(words.pop() if words else None, timeout), timeout)

    def patiently(self, call, timeout):
        if timeout is None:
            return call()
        patience = Patience(timeout)
        while True:
            try:
                return call(timeout=min(1, max(timeout, 0)))
            except subprocess.TimeoutExpired as error:
                if patience.is_over():
                    error.timeout = timeout
                    raise


subprocess.Popen = PatientProcess
