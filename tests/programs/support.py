"""Runs the programs as a user does, and reads the files that they leave.

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
import zlib

from patience import Patience, seconds

# Results must not depend on measured times. Tests of tuning change this.
os.environ.setdefault("PLEXAURA_TUNING", "off")

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else SOURCE / "build"
MPIRUN = SOURCE / "tests/support/mpirun.sh"
VERSION = subprocess.run([BUILD / "models/mlp", "--version"], capture_output=True, text=True).stdout
HAS_MPI = "no MPI" not in VERSION
HAS_SODIUM = "no libsodium" not in VERSION
HAS_ONEDNN = "no oneDNN" not in VERSION
DESCRIBES_GPUS = (BUILD / "core/plexaura_described/plexaura_cuda.so").exists()  # not in builds with sanitizers
# The number of random faults: 20 with tools/test --faults.
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
    """Returns the environment for tests that call mpirun themselves. tests/support/mpirun.sh explains the
    settings for the address sanitizer."""
    return dict(environment(), ASAN_OPTIONS=f"{os.environ.get('ASAN_OPTIONS', '')}:fast_unwind_on_malloc=0")


def open_mpi_5():
    """Returns the environment in which programs and mpirun are those of Open MPI 5, or None if it is not
    available."""
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
    """Returns the lines of our programs. mpirun prints its own remarks between two dashed lines."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("-----"):
            inside = not inside
        elif not inside and line.strip() and not re.match(r"\[\S+:\d+\]", line):
            lines.append(line)
    return lines


def with_short_files(kilobytes, command):
    """Limits the size of files, as on a full disk. This includes the files for shared memory of Open MPI,
    which works without them."""
    return ["bash", "-c", f'export OMPI_MCA_btl=tcp,self; ulimit -f {kilobytes} && exec "$@"', "-", *command]


def short_deadline(number=2):
    """Returns a setting with this deadline in seconds, for ranks on an idle machine."""
    return f"distributed.deadline_seconds={seconds(number)}"


class ProgramTest(unittest.TestCase):
    """Each test runs programs in its own folder."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="plexaura-programs-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        os.environ["XDG_CACHE_HOME"] = str(self.folder / "cache")  # no test uses the user's cache

    def command(self, program, *arguments):
        return [str(BUILD / "models" / program), *map(str, arguments)]

    def run_one(self, program, *arguments, status=0, within=120, limit="", user=None):
        """Runs without mpirun. `limit` is an option of ulimit, such as "-f 100"; `user` is the id of another
        user."""
        command = self.command(program, *arguments)
        if limit:
            command = ["bash", "-c", f'ulimit {limit} && exec "$@"', "-", *command]
        done = subprocess.run(command, cwd=self.folder, env=environment(), capture_output=True, text=True, timeout=within, user=user)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}{done.stderr}")
        return Result(done.returncode, done.stdout, done.stderr)

    def run_ranks(self, ranks, program, *arguments, status=0, within=120):
        """Runs under mpirun if there are several ranks."""
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
        """Starts mpirun, and does not wait for it. The command may contain those of further ranks, in
        mpirun's syntax."""
        if not HAS_MPI:
            self.skipTest("built without MPI")
        return subprocess.Popen(["bash", "-c", f'. {SOURCE}/tools/mpi_environment && exec mpirun -n {ranks} "$@"', "-", *map(str, command)],
                                cwd=self.folder, env=mpi_environment(), **options)

    def let_go_wrong(self, *faults):
        """Makes these faults happen in the ranks of faulty_mlp, from now on: see
        tests/programs/faulty/faults.h."""
        os.environ["PLEXAURA_FAULTS"] = ";".join(faults)
        self.addCleanup(os.environ.pop, "PLEXAURA_FAULTS", None)

    @contextlib.contextmanager
    def case(self, kind, name):
        """Runs a subtest, and writes a line for the table of tools/test --faults to the file
        PLEXAURA_FAULT_LOG."""
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
                    # Other tests write to the file at the same time, each a line at once.
                    with open(log, "a") as file:
                        file.write(line + "\n")

    def processes(self, *words):
        """Returns the processes that run in the folder of the test and have these words among their
        arguments."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_here = os.readlink(process / "cwd") == str(self.folder) and (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                arguments = (process / "cmdline").read_text().split("\0")
                if is_here and set(words) <= set(arguments):
                    found.append((int(process.name), arguments))
        return found

    def wait_for(self, done, within=60):
        """Waits with a tenth of a processor, because tests run beside each other."""
        patience, before = Patience(within), time.thread_time()
        while not done():
            self.assertFalse(patience.is_over(), f"it did not come within {within} s")
            time.sleep(max(0.02, min(0.2, 9 * (time.thread_time() - before))))
            before = time.thread_time()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def iris(self, *settings):
        """Returns arguments: the YAML file of Iris with its data, and overrides."""
        return [SOURCE / "models/iris.yaml", "--set", f"data.path={SOURCE / 'models/iris.csv'}", *self.settings(*settings)]

    def cnn(self, *settings, samples=47):
        """Returns arguments for a small convolutional net with dropout, on small images."""
        if not (self.folder / "digits").exists():
            write_idx(self.folder / "digits", "train", samples)
            write_idx(self.folder / "digits", "t10k", 13)
        return [self.write("cnn.yaml", CNN), *self.settings(*settings)]

    @staticmethod
    def settings(*pairs):
        return [word for pair in pairs for word in ("--set", pair)]

    def checkpoint(self, output):
        """Returns the folder of the newest checkpoint."""
        return max((self.folder / output).glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))

    def checkpoints(self, output):
        """Returns the names of all visible files, without the events of the ranks."""
        return sorted(path.name for path in (self.folder / output).iterdir() if not path.name.startswith(".") and path.name != "events")

    def weights(self, output):
        return read_safetensors(self.checkpoint(output) / "weights.safetensors")

    def weight_bytes(self, output):
        return (self.checkpoint(output) / "weights.safetensors").read_bytes()

    def log(self, name):
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


def read_safetensors(path):
    """Returns names and values of the floating tensors."""
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
    """Writes float32 tensors. Each is a list, or has the shape given in `shapes`."""
    header, data = {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": shapes.get(name, [len(values)]), "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def difference(a, b):
    """Returns max |a - b| / max |a|, the largest over all tensors."""
    assert a.keys() == b.keys()
    return max(max(abs(x - y) for x, y in zip(a[name], b[name])) / max(max(map(abs, a[name])), 1e-30) for name in a)


def write_idx(folder, part, count, size=10, classes=3, labels=None):
    """Writes images in MNIST's format: a bright bar on noise, whose position determines the class."""
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


def write_png(path, width, channels, values):
    """Writes 8-bit grey (1 channel) or RGB (3) pixels; `values` has them row by row."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    size = width * channels
    rows = b"".join(b"\0" + bytes(values[i:i + size]) for i in range(0, len(values), size))
    header = struct.pack(">IIBBBBB", width, len(values) // size, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def draw_images(folder, classes=3, train=6, val=2, size=32):
    subprocess.run([BUILD / "tools/draw_shapes", folder, "--classes", str(classes), "--train", str(train), "--val",
                    str(val), "--size", str(size)], check=True, stdout=subprocess.DEVNULL)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
