"""Report D (Gorgonia, 2024): time and memory of ResNet50 over the batch size, and the asynchronous parameter server, which that report
designed and did not build."""

import json
import os
import statistics
import subprocess
import tempfile

from lab import percent
from tool import Mistake

STEPS = 4  # of a run; the first one is not timed
NOTE = ("Published: a GPU's memory grew from 3 GB at a batch of 5 to 28 GB at 50, and PyTorch took 1/20 to 1/30 of the time. Here everything "
        "runs on the CPU. Peak: memory of the whole process, with weights, gradients and data.")
SLOW_NOTE = ("The last of four ranks takes three times as long as the others. Ideal is the speed if no rank ever waited. The report claimed "
             "that an asynchronous server leaves no rank idle, and did not show it.")


def run(lab):
    over_batches(lab)
    with_a_slow_rank(lab)


def over_batches(lab):
    rows, memory, rate = [], {}, {}
    for batch in lab.choose([5, 10], [5, 10, 20, 30, 40, 50]):
        found = {"plexaura": ours(lab, batch), **({"PyTorch": peer(lab, batch)} if lab.peer else {})}
        for name, (seconds, peak) in found.items():
            memory.setdefault(name, []).append((batch, peak / 1e9))
            rate.setdefault(name, []).append((batch, batch / seconds))
        compared = [f"{found['PyTorch'][0]:.2f}", f"{found['PyTorch'][1] / 1e9:.2f}", f"{found['plexaura'][0] / found['PyTorch'][0]:.2f}"] if lab.peer else []
        rows.append([batch, f"{found['plexaura'][0]:.2f}", f"{found['plexaura'][1] / 1e9:.2f}", *compared])
    head = ["batch", "seconds of a step", "peak, GB"] + (["PyTorch: seconds", "peak, GB", "ratio of the seconds"] if lab.peer else [])
    lab.add_table("ResNet50 at 224×224 over the batch", head, rows, NOTE)
    lab.add_picture("memory", "Peak memory of ResNet50", "GB", memory, across="batch")
    lab.add_picture("speed", "Speed of ResNet50", "images/s", rate, across="batch")


def ours(lab, batch):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        words = lab.program("resnet", "resnet50", f"training.batch_size={batch}", "output.dir=")
        peak = peak_of(lab, [*words, "--steps", str(STEPS), "--log", log.name])
        steps = [json.loads(line) for line in log]
    return statistics.median(batch / step["images_per_second"] for step in steps[1:] if step["event"] == "step"), peak


def peer(lab, batch):
    script = f"""
import sys, time, torch
sys.path.insert(0, {str(lab.root / 'dev/compare_parts')!r})
from peer_models import torch_model
model, optimizer = torch_model("resnet50", 5)
x, y, times = torch.randn({batch}, 3, 224, 224), torch.randint(5, ({batch},)), []
for _ in range({STEPS}):
    begin = time.monotonic()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    times.append(time.monotonic() - begin)
print(sorted(times[1:])[len(times[1:]) // 2], file=open(sys.argv[1], "w"))
"""
    with tempfile.NamedTemporaryFile("r") as answer:
        peak = peak_of(lab, [lab.peer, "-c", script, answer.name])
        return float(answer.read()), peak


def peak_of(lab, words):
    """Runs a program and returns the bytes of its largest resident memory."""
    print("  " + " ".join(words[:2]), flush=True)
    process = subprocess.Popen(words, cwd=lab.root, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise Mistake(f"'{words[0]}' ended with exit status {process.returncode}; its message is above")
    return 1024 * usage.ru_maxrss


def with_a_slow_rank(lab):
    program = lab.program("convnet", "mnist_cnn", *lab.choose(["training.epochs=1", "data.limit=12800"], ["training.epochs=3"]))
    rows = lab.scale("slow_rank", "--trainers", "1,4", "--strategies", "allreduce,local,elastic,async-server,downpour", "--slow", "3", "--trace-steps", "0",
                     "--pace", "4", "--target", str(lab.choose(0.9, 0.985)), program=program)
    lab.add_table("One of four ranks three times as slow (MNIST CNN)", ["strategy", "images/s", "idle", "of ideal", "accuracy", "seconds to the target"],
                  [[row["strategy"], f"{row['samples_per_second']:,.0f}", percent(row["idle"], 1), percent(row["of_ideal"], 1), percent(row["accuracy"]),
                    "–" if row["seconds_to_target"] is None else f"{row['seconds_to_target']:.0f}"] for row in rows], SLOW_NOTE)
