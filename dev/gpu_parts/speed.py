"""The stage `speed`: times training steps and forward passes with dev/bench, measures their memory, and
compares steps with their roofline."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import time

from machine import MemoryWatch

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# For one case. The first run measures kernels.
MOST_SECONDS = 150
# Counts that bench prints for a step if the backend has them: copies between host and device, those of them
# that are recorded, and waits.
COUNTS = ["copies_per_step", "recorded_copies_per_step", "waits_per_step"]


def bench(check, case, backend, *more):
    return [check.build / "dev/bench", SOURCE / f"models/{case.model}.yaml", "--sample", case.sample, "--classes", str(case.classes),
            "--backend", backend, *case.settings(), *more]


def run_speed(stage, check):
    cases = [case for case in check.sizes.cases if stage.wants(case.name())]
    roofs = find_rooflines(stage, check, cases) if cases else {}
    for case in cases:
        if stage.reaches(case.name()):
            time_case(stage, check, case, roofs.get(case.name(), {}))


def find_rooflines(stage, check, cases):
    """Returns the least time of each training step, from the manifest of a carried build or computed here."""
    device = check.machine.described()
    if device is None:
        stage.add("rooflines", "skipped", detail=f"--device knows no {check.machine.gpu}")
        return {}
    carried = check.manifest.get("rooflines", {}).get(device)
    found = carried or rooflines(check, cases, device, stage.environment, stage.left() / 3)
    failed = sorted({entry["why"] for entry in found.values() if "why" in entry})
    where = ", found before" if carried else ""
    stage.add("rooflines", "FAILED" if failed else "passed", detail=failed[0] if failed else f"of {len(found)} steps, for {device}{where}")
    return {name: entry for name, entry in found.items() if "why" not in entry}


def rooflines(check, cases, device, environment, seconds):
    """Computes by name of a case the least time of its training step on this device, from what the step would
    enqueue. Needs no GPU, so several run at once."""
    end = time.monotonic() + seconds

    def describe(case):
        command = bench(check, case, "cuda:tf32=1" if case.precision == "tf32" else "cuda", "--device", device)
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=max(end - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            return {"why": "there was no time for it"}
        return json.loads(done.stdout) if done.returncode == 0 else {"why": done.stderr.strip()}

    training = [case for case in cases if not case.inference and case.branches]
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        return dict(zip((case.name() for case in training), pool.map(describe, training)))


def time_case(stage, check, case, roof):
    more = ["--bytes", "--seconds", str(check.sizes.seconds), *(["--inference"] if case.inference else [])]
    with MemoryWatch() as memory:
        done = stage.run(case.name(), bench(check, case, check.backend_for(case), *more), at_most=MOST_SECONDS)
    if done.timed_out or done.status != 0:
        why = "it was ended, for it took longer than it may" if done.timed_out else done.last_line()
        stage.add(case.name(), "FAILED", done.seconds, why)
        return
    said = json.loads(done.last_line())
    figures = {"model": case.model, "precision": case.precision, "batch": case.batch, "inference": case.inference,
               "branches": case.branches, "ms": said["median_s"] * 1000, "images_per_second": said["images_per_second"], "planned_mb": said["arena_mb"],
               "driver_mb": memory.most()}
    if roof:
        figures |= {"roofline_ms": roof["roofline_s"] * 1000, "share_of_roofline": roof["roofline_s"] / said["median_s"],
                    "graph_launches": roof["graph_launches"]}
    figures |= {name: said[name] for name in COUNTS if name in said}
    stage.add(case.name(), "passed", done.seconds, f"{figures['ms']:.2f} ms, {figures['images_per_second']:.0f} images/s", figures)
