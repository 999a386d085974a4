"""Scales waiting times by the load of the machine, so that tests fail because of wrong results and not
because of the load."""

import os
import pathlib
import subprocess
import time


def slowness():
    """Returns how many times longer than on an idle machine a test may take: the number of runnable threads
    for each core."""
    load, _, _, threads, _ = pathlib.Path("/proc/loadavg").read_text().split()
    return max(1.0, float(load) / os.cpu_count(), int(threads.split("/")[0]) / os.cpu_count())


def seconds(number):
    """Returns seconds for a deadline that the programs keep: the number on an idle machine, scaled by the
    load."""
    return round(number * slowness(), 1)


class Patience:
    """A time limit in seconds of an idle machine."""

    def __init__(self, number):
        self.left, self.looked = number, time.monotonic()

    def is_over(self):
        now = time.monotonic()
        self.left -= (now - self.looked) / slowness()
        self.looked = now
        return self.left < 0


class PatientProcess(subprocess.Popen):
    """A process whose time limits are scaled. subprocess.run() uses it, too."""

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
