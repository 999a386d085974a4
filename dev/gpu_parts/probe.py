"""The stage `probe`: tests the plugin's assumptions about CUDA and the card, one after another, with
dev/probe.cu."""

import pathlib

from machine import compiler

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MOST_SECONDS = 60  # for all questions


def run_probe(stage, check):
    if not stage.wants("probe"):
        return
    nvcc = compiler()
    if nvcc is None or check.peer_device != "cuda":
        stage.add("probe", "skipped", detail="this machine has no nvcc" if nvcc is None else "there is no GPU to ask")
        return
    program = check.data / "probe"
    compiled = stage.run("compile probe", [nvcc, "-arch=native", "-std=c++20", "-o", program, SOURCE / "dev/probe.cu"])
    if compiled.status != 0:
        stage.add("probe", "FAILED", compiled.seconds, f"nvcc: {compiled.last_line()}")
        return
    done = stage.run("probe", [program], at_most=MOST_SECONDS)
    for line in done.output.splitlines():
        question, _, answer = line.partition(": ")
        stage.add(question, "FAILED" if answer.startswith("FAILED") else "passed", detail=answer.removeprefix("FAILED, "))
    if done.timed_out or done.status not in (0, 1):
        stage.add("probe", "FAILED", done.seconds, "it was ended, for it took longer than it may" if done.timed_out else done.last_line())
