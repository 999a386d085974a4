"""Tests, run with one fault or none."""

import dataclasses
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from fnmatch import fnmatch
from pathlib import Path

GIB = 1 << 30
PASSED, SKIPPED = 0, 77
# Two threads, so that work is divided, and none that spins while the other works.
THREADS = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}


@dataclasses.dataclass
class Trial:
    name: str
    command: list
    environment: dict
    folder: str
    # Without a fault:
    passes: bool = False
    seconds: float = 0  # of processor time
    wall_seconds: float = 0
    reached: frozenset = frozenset()  # numbers of the faults it comes by

    def run(self, seconds, wall_seconds, **switches):
        """The exit status; a run that exceeds its time is killed, which is no pass."""
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
            resource.setrlimit(resource.RLIMIT_DATA, (8 * GIB, 8 * GIB))
            resource.setrlimit(resource.RLIMIT_FSIZE, (GIB, GIB))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        with tempfile.TemporaryDirectory(prefix="mutate.") as scratch:
            environment = {**os.environ, **THREADS, **self.environment, **switches, "TMPDIR": scratch}
            process = subprocess.Popen(self.command, cwd=self.folder, env=environment, preexec_fn=limit, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                return process.wait(wall_seconds)
            except subprocess.TimeoutExpired:
                return -signal.SIGKILL
            finally:
                end_group(process)

    def measure(self):
        """Runs without a fault, and notes whether it passes, its time, and the faults that it comes by."""
        with tempfile.NamedTemporaryFile() as table:
            table.truncate(65536)
            before, start = children_seconds(), time.monotonic()
            status = self.run(1000, 1000, PLEXAURA_MUTANTS_REACHED=table.name)
            self.seconds, self.wall_seconds = children_seconds() - before, time.monotonic() - start
            marks = Path(table.name).read_bytes()
        self.reached = frozenset(number for number, mark in enumerate(marks) if mark)
        self.passes = status in (PASSED, SKIPPED)
        return self.passes

    def notices(self, number):
        return self.run(5 + 10 * self.seconds, 30 + 20 * self.wall_seconds, PLEXAURA_MUTANT=str(number)) not in (PASSED, SKIPPED)


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def find_trials(build, patterns):
    """The tests of these names; those of a program of doctest cases by source file."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                                       capture_output=True, text=True).stdout)
    for test in listed["tests"]:
        if not any(fnmatch(test["name"], pattern) for pattern in patterns):
            continue
        properties = {p["name"]: p["value"] for p in test["properties"]}
        environment = dict(setting.split("=", 1) for setting in properties.get("ENVIRONMENT", []))
        folder, command = properties["WORKING_DIRECTORY"], test["command"]
        for file in doctest_files(command):
            yield Trial(f"{test['name']} {file}", [*command, f"--source-file=*/{file}", "--abort-after=1"], environment, folder)
        if not doctest_files(command):
            yield Trial(test["name"], command, environment, folder)


def doctest_files(command):
    if len(command) > 1 or not command[0].endswith("_tests"):
        return []
    listed = subprocess.run([*command, "--list-test-cases", "--reporters=xml"], check=True, capture_output=True, text=True).stdout
    paths = {Path(case.get("filename")) for case in ElementTree.fromstring(listed).iter("TestCase")}
    return sorted(f"{path.parent.name}/{path.name}" for path in paths)
