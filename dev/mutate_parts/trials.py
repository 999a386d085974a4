"""Runs tests with one fault or none."""

import dataclasses
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

GIB = 1 << 30
PASSED, SKIPPED = 0, 77
# Two threads, so that work is divided. They do not spin while they wait.
THREADS = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}


@dataclasses.dataclass
class Trial:
    test: str  # its name in ctest
    name: str
    command: list
    environment: dict
    folder: str
    # Measured without a fault:
    passes: bool = False
    seconds: float = 0  # processor time
    wall_seconds: float = 0
    reached: frozenset = frozenset()  # numbers of the faults that the test reaches

    def run(self, seconds, wall_seconds, **switches):
        """Runs the test. Returns true if it passes, and its processor time. A run that exceeds its time is
        killed and does not pass."""
        # A described GPU reserves as many addresses as it has memory.
        most_data = (200 if self.test.startswith("described") else 8) * GIB
        limits = ["prlimit", f"--cpu={int(seconds) + 1}", f"--data={most_data}", f"--fsize={GIB}", "--core=0", "--"]
        with tempfile.TemporaryDirectory(prefix="mutate.") as scratch:
            environment = {**os.environ, **self.environment, **THREADS, **switches, "TMPDIR": scratch}
            process = subprocess.Popen([*limits, *self.command], cwd=self.folder, env=environment, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            timer = threading.Timer(wall_seconds, end_group, [process.pid])
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            end_group(process.pid)
            return process.returncode in (PASSED, SKIPPED), usage.ru_utime + usage.ru_stime

    def measure(self):
        """Runs the test without a fault, and records whether it passes, its time, and the faults that it
        reaches."""
        with tempfile.NamedTemporaryFile() as table:
            table.truncate(65536)
            start = time.monotonic()
            self.passes, self.seconds = self.run(1000, 1000, PLEXAURA_MUTANTS_REACHED=table.name)
            self.wall_seconds = time.monotonic() - start
            marks = Path(table.name).read_bytes()
        self.reached = frozenset(number for number, mark in enumerate(marks) if mark)

    def notices(self, number):
        """Returns true if the test fails with the fault twice. A single failure may be accidental."""
        return all(not self.run(5 + 10 * self.seconds, 20 + 10 * self.wall_seconds, PLEXAURA_MUTANT=str(number))[0]
                   for _ in range(2))


def end_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def find_trials(build, is_wanted):
    """Returns the tests whose names are wanted. A program of doctest cases is split by source file."""
    listed = json.loads(subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                                       capture_output=True, text=True).stdout)
    for test in listed["tests"]:
        if not is_wanted(test["name"]):
            continue
        properties = {p["name"]: p["value"] for p in test["properties"]}
        environment = dict(setting.split("=", 1) for setting in properties.get("ENVIRONMENT", []))
        folder, command = properties["WORKING_DIRECTORY"], test["command"]
        files = doctest_files(command)
        for file in files:
            only = [*command, f"--source-file=*/{file}", "--abort-after=1"]
            yield Trial(test["name"], f"{test['name']} {file}", only, environment, folder)
        if not files:
            yield Trial(test["name"], test["name"], command, environment, folder)


def doctest_files(command):
    if len(command) > 1 or not command[0].endswith("_tests"):
        return []
    listed = subprocess.run([*command, "--list-test-cases", "--reporters=xml"], check=True, capture_output=True, text=True).stdout
    paths = {Path(case.get("filename")) for case in ElementTree.fromstring(listed).iter("TestCase")}
    return sorted(f"{path.parent.name}/{path.name}" for path in paths)
