"""Runs a configuration with one build in a separate folder, and returns the lines of each aspect."""

import os
import pathlib
import shutil
import signal
import subprocess

from builds import Skipped
from models import MODELS
from traces import call_lines, checkpoint_lines, log_lines, message_lines, without_places

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 300  # limit of a run
LACKING = {"mnist": "the variable PLEXAURA_DATA names no folder that has a folder mnist", "images": "OLD has not built draw_shapes"}


class Failed(Exception):
    """Says how a run has failed, and what it has printed."""


class Run:
    def __init__(self, row, build, folder, data, open_mpi_5):
        """`data` maps the names in Model.data to folders, or to None if there is no such data."""
        self.row, self.build, self.folder, self.data, self.open_mpi_5 = row, build, folder, data, open_mpi_5
        if row.ranks > 1 and not build.has_mpi:
            raise Skipped(f"{build.name} is built without MPI")
        if row.kind == "survive" and open_mpi_5 is None:
            raise Skipped("there is no Open MPI 5, neither in PATH nor in open_mpi_5 of a build, where its tests install it")
        folder.mkdir(parents=True)
        self.environment = self.make_environment()

    def make_environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PLEXAURA_")}
        kept |= {"OMP_NUM_THREADS": "1", "PLEXAURA_TUNING": "off", "XDG_CACHE_HOME": str(self.folder / "cache"), "OMPI_MCA_odls_base_sigkill_timeout": "1"}
        if self.row.backend not in ("cpu", "portable"):
            kept["PLEXAURA_PLUGIN_PATH"] = str(self.build.plugins(self.row.backend))
        return kept | (self.open_mpi_5 if self.row.kind == "survive" else {}) | self.row.environment

    def lines(self):
        """Returns the lines by aspect. Raises Skipped and Failed."""
        if self.row.kind == "graph":
            text = self.execute([self.build.program("graph"), self.build.shipped(self.row.model), "--format", "program", *self.row.arguments])
            return {"program": without_places(text.replace(str(self.build.source), ""))}
        self.prepare()
        getattr(self, self.row.kind)()
        lines = {"checkpoint": checkpoint_lines(self.folder / "out"), "calls": self.calls(call_lines), "messages": self.calls(message_lines), "program": [],
                 "results": log_lines(self.folder / "log") + self.said}
        if "program" in self.row.aspects:
            lines["program"] = without_places(self.start(self.command("--dry-run", "--program")))
        return lines

    def prepare(self):
        """Prepares the folder. Files have the same names for both builds, because programs print them."""
        self.model, self.said, self.phase = MODELS[self.row.model], [], 0
        if self.data[self.model.data] is None:
            raise Skipped(LACKING[self.model.data])
        shutil.copy(self.build.shipped(self.model.yaml), self.folder / "model.yaml")
        (self.folder / "data").symlink_to(self.data[self.model.data])

    def command(self, *arguments, program=None):
        settings = [word for setting in ("data.path=data", "output.dir=out", *self.model.settings) for word in ("--set", setting)]
        return [program or self.build.program(self.model.program), "model.yaml", *settings, *self.row.arguments, *arguments]

    def train(self):
        self.start(self.recorded(self.command("--log", "log")))

    def resume(self):
        self.start(self.recorded(self.command("--log", "log", "--steps", self.row.numbers[0])))
        self.start(self.recorded(self.command("--log", "log", "--resume")))

    def kill(self):
        self.start(self.command(program=self.build.program(f"faulty_{self.model.program}")), is_to_fail=True, more=self.death())
        self.start(self.recorded(self.command("--log", "log", "--resume")))

    def survive(self):
        self.start(self.command("--log", "log", program=self.build.program(f"faulty_{self.model.program}")), more=self.death())

    def predict(self):
        self.train()
        for arguments in (["--evaluate"], ["--predict", "data"]):
            self.said += self.execute(self.command(*arguments)).splitlines()

    def death(self):
        rank, step = self.row.numbers
        return {"PLEXAURA_FAULTS": f"{rank}:1:0:kill:step {step}"}

    def recorded(self, command):
        """Returns the command with the variables that make this start of the ranks write its calls to a
        separate folder."""
        self.phase += 1
        folder = self.folder / f"calls{self.phase}"
        folder.mkdir()
        return ["env", f"PLEXAURA_CALLS={folder}", f"LD_PRELOAD={self.build.recorder}", *command]

    def calls(self, read):
        return [f"start {phase}, {line}" for phase in range(1, self.phase + 1) for line in read(self.folder / f"calls{phase}")]

    def start(self, command, **options):
        """Starts the command with the ranks of the configuration."""
        if self.row.kind == "survive":
            command = [self.build.source / "tools/run", "-n", self.row.ranks, "--survive", *command]
        elif self.row.ranks > 1:
            command = ["bash", "-c", f'. "$0" && exec mpirun -n {self.row.ranks} "$@"', ROOT / "tools/mpi_environment", *command]
        return self.execute(command, **options)

    def execute(self, command, is_to_fail=False, more=None):
        process = subprocess.Popen([str(word) for word in command], cwd=self.folder, env=self.environment | (more or {}), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            out, err = end(process)
            raise Failed(f"does not end within {SECONDS} s; {last_line(err + out)}") from None
        except BaseException:
            end(process)
            raise
        if (process.returncode != 0) != is_to_fail:
            raise Failed(f"returns {process.returncode}; {last_line(out + err)}")
        return out


def end(process):
    """Asks mpirun to end; it then ends its ranks."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


def last_line(text):
    """Returns the last line of the output without messages of mpirun, which stand between dashed lines."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("-----"):
            inside = not inside
        elif not inside and line.strip():
            lines.append(line.strip())
    return f"its last line is: {lines[-1]}" if lines else "it says nothing"
