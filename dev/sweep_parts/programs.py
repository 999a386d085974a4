"""The programs whose steps a sweep times: ours, and those of the peers."""

import collections
import json
import os
import statistics
import subprocess
import sys
import time


Measurement = collections.namedtuple("Measurement", "seconds parameters")  # the median of a step, the number of trained elements


class Ours:
    def __init__(self, options, folder, backend):
        self.options, self.folder, self.backend = options, folder, backend
        self.environment = os.environ | ({"OMP_NUM_THREADS": "1"} if options.processor_time else {})

    def command(self, net, *arguments):
        path = self.folder / f"net{net.number}.yaml"
        path.write_text(net.yaml(), encoding="utf-8")
        return [self.options.build / "dev/bench", path, "--sample", ",".join(map(str, net.sample)), "--classes", str(net.classes),
                "--backend", self.backend, *(["--inference"] if self.options.inference else []), *map(str, arguments)]

    def run(self, command):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self.environment)
        if done.returncode != 0:
            sys.exit(f"sweep: {' '.join(map(str, command))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def prepare(self, net):
        command = self.command(net, "--seconds", self.options.seconds, *(["--processor-time"] if self.options.processor_time else []))

        def measure():
            result = self.run(command)
            return Measurement(result["median_s"], result["parameters"])

        return measure

    def plan(self, net):
        return self.run(self.command(net, "--plan"))


class PyTorch:
    def __init__(self, options):
        import torch

        self.options, self.torch = options, torch
        self.now = time.process_time if options.processor_time else time.perf_counter
        if options.processor_time:
            torch.set_num_threads(1)
        torch.manual_seed(1)

    def prepare(self, net):
        from sweep_parts.torch_nets import make_batch, make_model, make_optimizer

        torch = self.torch
        model, (samples, targets) = make_model(net), make_batch(net)
        optimizer = make_optimizer(net, model.parameters())
        parameters = sum(p.numel() for p in model.parameters())
        if self.options.compile:
            torch.compiler.reset()
            model = torch.compile(model)

        def train():
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(samples).flatten(0, -2), targets.flatten())
            loss.backward()
            optimizer.step()
            return loss.item()

        def infer():
            with torch.no_grad():
                return model(samples)

        model.train(not self.options.inference)
        return lambda: Measurement(self.time(infer if self.options.inference else train), parameters)

    def time(self, step):
        for _ in range(3):
            step()
        times, begin = [], self.now()
        while len(times) < 5 or self.now() - begin < self.options.seconds:
            start = self.now()
            step()
            times.append(self.now() - start)
        return statistics.median(times)
