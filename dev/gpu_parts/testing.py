"""The stage `tests`: runs all tests of the build on the GPU, and compares training runs that have to agree.
"""

import json
import pathlib
import random
import shutil
import struct

from machine import modules_missing, sanitizer
from plugin import NO_GPU
from tests_of_build import moved

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# Largest relative difference of a loss between CPU and GPU in strict float32.
MOST_DIFFERENCE = 1e-3
# Chooses kernels by estimates, so that results do not depend on measured times.
REPEATABLE = {"PLEXAURA_TUNING": "off"}
AGAIN = ("bfloat16", "float32")


def run_tests(stage, check):
    """Runs quick rows and the most informative rows first."""
    stage.row("iris", check.program("mlp", "iris", "--steps", 200, "--backend", check.backend, output=""), variables=REPEATABLE, cwd=SOURCE)
    write_digits(check.data / "digits", check.sizes.batch * 20)
    stage.row("digits", check.program("convnet", "mnist_cnn", "--set", f"data.path={check.data / 'digits'}", "--steps", check.sizes.rerun_steps,
                                      "--backend", check.backend, output=""), variables=REPEATABLE)
    run_unit_tests(stage, check)
    net = check.sizes.net
    on_shapes = [f"{net} follows the CPU", *(f"{net} again {precision}" for precision in AGAIN), f"compute-sanitizer memcheck {net}"]
    if any([stage.wants(name) for name in on_shapes]) and not draw_shapes(stage, check):
        return
    follow_the_cpu(stage, check)
    for precision in AGAIN:
        run_again(stage, check, precision)
    compare_gradients(stage, check)
    run_sanitizer(stage, check)


def draw_shapes(stage, check):
    """Draws the images for the runs. Returns false if that failed."""
    shapes = [check.build / "tools/draw_shapes", check.data / "shapes", "--classes", 6, "--train",
              check.sizes.batch * max(check.sizes.follow_steps, check.sizes.rerun_steps) // 6 + 1, "--val", 2, "--size", check.sizes.pixels]
    shutil.rmtree(check.data / "shapes", ignore_errors=True)
    drawn = stage.run("shapes", shapes)
    if drawn.status != 0:
        stage.add("shapes", "FAILED", drawn.seconds, f"without drawn images no runs can be compared: {drawn.last_line()}")
    return drawn.status == 0


def judge_unit_tests(done):
    """Returns the result of a test program. A test that found no GPU does not count as passed."""
    for line in done.output.splitlines():
        if NO_GPU.search(line):
            return "FAILED", f"it found no GPU: {line.strip()}"
    return "passed", ""


def run_unit_tests(stage, check):
    tests = [moved(test, check.manifest, check.build, SOURCE) for test in check.manifest["tests"]]
    if not tests:
        stage.add("tests of the build", "FAILED", detail="the build has none for the GPU; was it configured with -D PLEXAURA_CUDA=ON?")
    for test in tests:
        if not stage.wants(test["name"]):
            continue
        if test["name"] == "cuda_tests.libraries":
            stage.add(test["name"], "FAILED", detail="the build has no cuBLASLt or no cuDNN: the plugin has its own kernels alone")
        elif not test["command"] or not pathlib.Path(test["command"][0]).exists():
            stage.add(test["name"], "FAILED", detail="its program was not built")
        else:
            stage.row(test["name"], test["command"], judge_unit_tests, variables=test["variables"], at_most=300)


def train(check, name, steps, *more):
    """Returns the command of a training run on drawn images. `name` is the name of its folder and its log."""
    sizes = check.sizes
    log = check.data / f"{name}.log"
    log.unlink(missing_ok=True)
    shutil.rmtree(check.data / name, ignore_errors=True)
    return check.program("resnet", sizes.net, "--set", f"data.path={check.data / 'shapes'}", "--set", f"data.image_size={sizes.pixels}", "--set",
                         f"training.batch_size={sizes.batch}", "--steps", steps, "--log", log, *more, output=check.data / name)


def losses_of(check, name):
    entries = [json.loads(line) for line in (check.data / f"{name}.log").read_text(encoding="utf-8").splitlines()]
    return [entry["loss"] for entry in entries if "step" in entry and "loss" in entry]


def follow_the_cpu(stage, check):
    """Compares losses of the GPU with those of the CPU, for the same steps and seed in strict float32."""
    steps, name = check.sizes.follow_steps, f"{check.sizes.net} follows the CPU"
    if not stage.reaches(name):
        return
    cpu = check.manifest.get("cpu_losses") or cpu_losses(stage, check)  # the build may carry the CPU's losses
    if not cpu:
        return

    def judge(_):
        gpu = losses_of(check, "gpu")
        if len(cpu) != steps or len(gpu) != steps:
            return "FAILED", f"{len(cpu)} and {len(gpu)} losses where there should be {steps}"
        worst = worst_difference(cpu, gpu)
        told = f"{steps} losses, {cpu[0]:.4f} to {cpu[-1]:.4f}, differ by {worst:.1e} at most (allowed {MOST_DIFFERENCE:.0e})"
        return ("passed", told) if worst <= MOST_DIFFERENCE else ("FAILED", f"{told}; {control(stage, check, cpu)}")

    stage.row(name, train(check, "gpu", steps, "--backend", check.backend), judge, variables=REPEATABLE)


def cpu_losses(stage, check):
    """Returns the losses of the CPU that others are compared with. If the run fails, adds a row and returns
    None."""
    done = stage.run("cpu", train(check, "cpu", check.sizes.follow_steps, "--backend", "cpu"), variables=REPEATABLE)
    if done.status == 0:
        return losses_of(check, "cpu")
    stage.add(f"{check.sizes.net} follows the CPU", "FAILED", done.seconds, f"the run on the CPU did not end well: {done.last_line()}")
    return None


def worst_difference(expected, found):
    return max(abs(a - b) / abs(a) for a, b in zip(expected, found))


def control(stage, check, cpu):
    """Describes how far results of the CPU differ if it only adds in another order. The GPU cannot be
    expected to be closer."""
    done = stage.run("control", train(check, "control", check.sizes.follow_steps, "--backend", "cpu"), variables={**REPEATABLE, "OMP_NUM_THREADS": "1"})
    if done.timed_out or done.status != 0:
        return "there was no time to see how far the CPU with one thread is from itself with all"
    return f"the CPU with one thread differs from itself with all by {worst_difference(cpu, losses_of(check, 'control')):.1e}"


def weights_of(check, name):
    return [path.read_bytes() for path in sorted((check.data / name).glob("checkpoint-*/weights.safetensors"))]


def run_again(stage, check, precision):
    """Checks that two runs end with the same bits."""
    name = f"{check.sizes.net} again {precision}"
    if not stage.reaches(name):
        return
    more = ["--backend", check.backend, "--set", f"training.precision={precision}"]
    first = stage.run(f"first {precision}", train(check, "first", check.sizes.rerun_steps, *more), variables=REPEATABLE)
    if first.status != 0:
        stage.add(name, "FAILED", first.seconds, f"the first run did not end well: {first.last_line()}")
        return

    def judge(_):
        one, two = weights_of(check, "first"), weights_of(check, "again")
        if not one or not two:
            return "FAILED", "a run left no weights"
        return ("passed", "all weights are equal bit for bit") if one == two else ("FAILED", "the weights differ")

    stage.row(name, train(check, "again", check.sizes.rerun_steps, *more), judge, variables=REPEATABLE)


def compare_gradients(stage, check):
    missing = modules_missing(check.machine.python, "torch", "torchvision", "safetensors")
    if missing:
        stage.skip("gradients beside PyTorch's", f"{check.machine.python} lacks {', '.join(missing)}")
        return
    stage.row("gradients beside PyTorch's", [check.machine.python, SOURCE / "dev/compare_pytorch_gradients", "--build", check.build,
                                            "--backend", check.backend, "--batch", 4, "--size", 64],
              lambda done: ("passed", done.last_line()))


def run_sanitizer(stage, check):
    tool = sanitizer()
    if tool is None:
        stage.skip("compute-sanitizer", "this machine has none")
        return
    small = ["--set", f"data.path={check.data / 'digits'}", "--set", "training.batch_size=4", "--steps", 2, "--backend", check.backend]
    image = train(check, "watched", 1, "--backend", check.backend, "--set", "data.image_size=32", "--set", "training.batch_size=2", "--set", "training.precision=bfloat16")
    runs = {"memcheck digits": check.program("convnet", "mnist_cnn", *small, output=""),
            "racecheck digits": check.program("convnet", "mnist_cnn", *small, output=""), f"memcheck {check.sizes.net}": image}
    for name, command in runs.items():
        kind = name.split()[0]
        row = f"compute-sanitizer {name}"
        if not stage.reaches(row):
            continue
        done = stage.run(row, [tool, "--tool", kind, "--target-processes", "all", "--error-exitcode", 99, *command], variables=REPEATABLE,
                         at_most=120)
        if "Device not supported" in done.output:
            stage.add(row, "skipped", done.seconds, "compute-sanitizer does not support this machine")
        elif done.timed_out:  # no error until then
            stage.add(row, "not run", done.seconds, "it was ended, for it took longer than it may")
        elif done.status != 0:
            stage.add(row, "FAILED", done.seconds, f"status {done.status}: {done.last_line()}")
        else:
            stage.add(row, "passed", done.seconds, done.last_line())


def write_digits(folder, count):
    """Writes images in MNIST's format: a bright bar on noise, whose position determines the class."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        source = random.Random(part)
        labels = bytes(i % 10 for i in range(count))
        pixels = b"".join(bytes(source.randrange(120) + 120 * (row // 3 == label) for row in range(28) for _ in range(28)) for label in labels)
        (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + pixels)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels)
