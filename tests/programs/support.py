"""Runs the programs as a user does, and reads what they leave behind.

A script of tests is called as: SCRIPT BUILD_FOLDER [TEST...]
"""

import array
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from patience import Patience, seconds

# What a program computes does not depend on what was fastest here. Tests of that say otherwise themselves.
os.environ.setdefault("PLEXAURA_TUNING", "off")

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SOURCE / "build"
MPIRUN = SOURCE / "tests/support/mpirun.sh"
VERSION = subprocess.run([BUILD / "models/mlp", "--version"], capture_output=True, text=True).stdout
HAS_MPI = "no MPI" not in VERSION
HAS_SODIUM = "no libsodium" not in VERSION
HAS_ONEDNN = "no oneDNN" not in VERSION
DESCRIBES_GPUS = (BUILD / "core/plexaura_described/plexaura_cuda.so").exists()  # not in builds with sanitizers
# Of faults that are brought about at random: 20 with tools/test --faults.
FAULT_SEEDS = int(os.environ.get("PLEXAURA_FAULT_SEEDS", "2"))

CNN = """
model:
  name: convnet
  layers:
    - {type: conv, channels: 4, kernel: 3}
    - {type: relu}
    - {type: max_pool, kernel: 2}
    - {type: flatten}
    - {type: dropout, p: 0.3}
    - {type: linear, units: 16}
    - {type: relu}
    - {type: linear}
data:
  format: idx
  path: digits
  classes: 3
training:
  batch_size: 10
  epochs: 2
  seed: 7
  optimizer: {name: adam, learning_rate: 0.005}
output:
  dir: run
"""


def environment():
    return dict(os.environ, OMP_NUM_THREADS="1")


def mpi_environment():
    """For a test that calls mpirun itself: tests/support/mpirun.sh says what the address sanitizer needs."""
    return dict(environment(), ASAN_OPTIONS=f"{os.environ.get('ASAN_OPTIONS', '')}:fast_unwind_on_malloc=0")


def open_mpi_5():
    """The variables under which programs and mpirun are those of Open MPI 5; None where it cannot be had."""
    script = [SOURCE / "tests/support/open_mpi_5.sh", BUILD / "open_mpi_5", "env", "-0"]
    done = subprocess.run(script, capture_output=True)
    return dict(entry.split("=", 1) for entry in os.fsdecode(done.stdout).split("\0") if entry) if done.returncode == 0 else None


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def text(self):
        return self.out + self.err


def without_mpirun(text):
    """The lines of our programs: mpirun puts its own remarks between two rules of dashes."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("-----"):
            inside = not inside
        elif not inside and line.strip() and not re.match(r"\[\S+:\d+\]", line):
            lines.append(line)
    return lines


def with_short_files(kilobytes, command):
    """No file may be longer, as on a full disk. Nor may those through which ranks of Open MPI share memory: they do without."""
    return ["bash", "-c", f'export OMPI_MCA_btl=tcp,self; ulimit -f {kilobytes} && exec "$@"', "-", *command]


def short_deadline(number=2):
    """A setting: so many seconds for ranks to come, on a machine that does nothing else."""
    return f"distributed.deadline_seconds={seconds(number)}"


class ProgramTest(unittest.TestCase):
    """Every test has a folder of its own, in which programs run."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plexaura-programs-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")  # no test depends on the user's

    def command(self, program, *arguments):
        return [str(BUILD / "models" / program), *map(str, arguments)]

    def run_one(self, program, *arguments, status=0, within=120, limit="", user=None):
        """Without mpirun. `limit`: a ulimit to set, such as "-f 100"; `user`: another one's number."""
        command = self.command(program, *arguments)
        if limit:
            command = ["bash", "-c", f'ulimit {limit} && exec "$@"', "-", *command]
        done = subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=within, user=user)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}{done.stderr}")
        return Result(done.returncode, done.stdout, done.stderr)

    def run_ranks(self, ranks, program, *arguments, status=0, within=120):
        """Under mpirun where there are several ranks."""
        if ranks == 1:
            return self.run_one(program, *arguments, status=status, within=within)
        return self.mpirun(ranks, self.command(program, *arguments), status, within)

    def mpirun(self, ranks, command, status=0, within=120):
        if not HAS_MPI:
            self.skipTest("built without MPI")
        options = ["-n", str(ranks), "--status", str(status), "--within", str(within)]
        done = subprocess.run([str(MPIRUN), *options, "--", *map(str, command)], cwd=self.folder, capture_output=True,
                              text=True, timeout=within + 30)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return Result(status, done.stdout, done.stderr)

    def start_ranks(self, ranks, *command, **options):
        """Under mpirun, which is not waited for. The command may go on with those of more ranks, as mpirun takes them."""
        if not HAS_MPI:
            self.skipTest("built without MPI")
        return subprocess.Popen(["bash", "-c", f'. {SOURCE}/tools/mpi_environment && exec mpirun -n {ranks} "$@"', "-", *map(str, command)],
                                cwd=self.folder, env=mpi_environment(), **options)

    def let_go_wrong(self, *faults):
        """In the ranks of faulty_mlp, from now on: see tests/programs/faulty/faults.h."""
        os.environ["PLEXAURA_FAULTS"] = ";".join(faults)
        self.addCleanup(os.environ.pop, "PLEXAURA_FAULTS", None)

    @contextlib.contextmanager
    def case(self, kind, name):
        """A subtest, and a line of the table that tools/test --faults prints, which it reads in the file PLEXAURA_FAULT_LOG."""
        begin, result = time.monotonic(), "FAILED"
        with self.subTest(f"{kind}: {name}"):
            try:
                yield
                result = "passed"
            except unittest.SkipTest:
                result = "skipped"
                raise
            finally:
                line = f"{kind:<14} {name:<90} {time.monotonic() - begin:6.1f} s  {result}"
                print(f"fault: {line}", flush=True)
                if log := os.environ.get("PLEXAURA_FAULT_LOG"):
                    with open(log, "a") as file:  # which other tests write at the same time, a line at once
                        file.write(line + "\n")

    def wait_for(self, done, within=60):
        patience = Patience(within)
        while not done():
            self.assertFalse(patience.is_over(), f"it did not come within {within} s")
            time.sleep(0.02)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def iris(self, *settings):
        """The shipped YAML with its data, and overrides."""
        return [SOURCE / "models/iris.yaml", "--set", f"data.path={SOURCE / 'models/iris.csv'}", *self.settings(*settings)]

    def cnn(self, *settings, samples=47):
        """A small convolutional net with dropout, on small images."""
        if not (self.folder / "digits").exists():
            write_idx(self.folder / "digits", "train", samples)
            write_idx(self.folder / "digits", "t10k", 13)
        return [self.write("cnn.yaml", CNN), *self.settings(*settings)]

    @staticmethod
    def settings(*pairs):
        return [word for pair in pairs for word in ("--set", pair)]

    def checkpoint(self, output):
        """The newest checkpoint's folder."""
        return max((self.folder / output).glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))

    def checkpoints(self, output):
        """The names of all that is there to be seen, but for the events of the ranks."""
        return sorted(path.name for path in (self.folder / output).iterdir() if not path.name.startswith(".") and path.name != "events")

    def weights(self, output):
        return read_safetensors(self.checkpoint(output) / "weights.safetensors")

    def weight_bytes(self, output):
        return (self.checkpoint(output) / "weights.safetensors").read_bytes()

    def log(self, name):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


def read_safetensors(path):
    """Names and values. Floating tensors only."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = array.array({"F32": "f", "F64": "d", "I64": "q"}[entry["dtype"]])
        values.frombytes(data[8 + size + begin:8 + size + end])
        tensors[name] = values
    return tensors


def write_safetensors(path, tensors, shapes):
    """Float32 tensors, each a list unless `shapes` has another shape of it."""
    header, data = {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": shapes.get(name, [len(values)]), "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def difference(a, b):
    """max |a - b| / max |a|, the largest of all tensors."""
    assert a.keys() == b.keys()
    return max(max(abs(x - y) for x, y in zip(a[name], b[name])) / max(max(map(abs, a[name])), 1e-30) for name in a)


def write_idx(folder, part, count, size=10, classes=3, labels=None):
    """Images in MNIST's format: a bright bar on noise, whose place tells the class."""
    source = random.Random(part)
    pixels, marks = bytearray(), bytearray()
    for i in range(count):
        label = i % classes
        marks.append(label if labels is None else labels[i % len(labels)])
        for row in range(size):
            bright = row // 3 == label
            pixels.extend(source.randrange(120) + (120 if bright else 0) for _ in range(size))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, size, size) + pixels)
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + marks)


def draw_images(folder, classes=3, train=6, val=2, size=32):
    subprocess.run([BUILD / "tools/draw_shapes", folder, "--classes", str(classes), "--train", str(train), "--val",
                    str(val), "--size", str(size)], check=True, stdout=subprocess.DEVNULL)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
