"""A process that times PyTorch steps for another process, so that compiled and captured code is kept from
round to round."""

import json
import math
import os
import select
import subprocess
import sys
import time


def serve():
    """Answers each line of standard input with one line on standard output. Other output of PyTorch goes
    elsewhere."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    steps = {}
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line), steps)) + "\n")
        answers.flush()


def answer(request, steps):
    import torch
    from torch_steps import Mode, make_step, median_seconds, set_flags
    device, key = request["device"], json.dumps(request["mode"])
    mode = Mode(**request["mode"])
    try:
        before = 0
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_reserved()  # memory that is still reserved from other modes
        if key not in steps:
            steps[key] = make_step(request["model"], request["sample"], request["classes"], request["batch"], mode, device)
        set_flags(mode, device)
        found = {"median_s": median_seconds(steps[key], request["seconds"], device)}
        if device == "cuda":
            found["peak_mb"] = (torch.cuda.max_memory_reserved() - before) / (1 << 20)
            torch.cuda.empty_cache()
        return found
    except Exception as error:  # a failing mode is reported, and the others continue
        return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"}


class Worker:
    """Starts the worker process and talks to it."""

    def __init__(self, script):
        self._process = subprocess.Popen([sys.executable, script, "--peer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._text = b""

    def ask(self, request, limit):
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        end = time.monotonic() + limit
        while b"\n" not in self._text:
            left = max(end - time.monotonic(), 0)
            ready, _, _ = select.select([self._process.stdout], [], [], left if math.isfinite(left) else None)
            if not ready:
                return {"error": "it was ended, for it took longer than it may"}
            piece = os.read(self._process.stdout.fileno(), 1 << 16)
            if not piece:
                return {"error": f"PyTorch's process ended with status {self._process.wait()}"}
            self._text += piece
        line, self._text = self._text.split(b"\n", 1)
        return json.loads(line)

    def end(self):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()
