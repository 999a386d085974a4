#!/usr/bin/env python3
"""Tests how tools/scaling evaluates traces and runs that the test makes up, and its plots.

usage: scaling_measure_test.py ROOT
"""

import contextlib
import csv
import importlib.machinery
import importlib.util
import io
import json
import math
import sys
import tempfile
import unittest
import xml.dom.minidom
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tools" / "scaling_parts"))

import measuring  # noqa: E402
import plot  # noqa: E402
import recording  # noqa: E402
import report  # noqa: E402
import timeline  # noqa: E402
from inputs import Mistake  # noqa: E402


def span(rank, name, start, duration, detail="", category="communication"):
    return {"ph": "X", "pid": rank, "name": name, "cat": category, "ts": start, "dur": duration, "args": {"detail": detail}}


def trace(rank=0, slower=1):
    """Yields four steps: 10 us forward, 20 us backward with two buckets and the tail, then exchange and
    update of each bucket."""
    for begin in (0, 1000, 2000, 3000):
        def at(name, start, duration, *more):
            return span(rank, name, begin + start * slower, duration * slower, *more)

        yield at("relu %1 of x", 0, 10, "", "instruction")
        yield at("matmul %2 of gradient of x", 10, 19, "", "instruction")
        yield from (at("gradients_ready", 10 + ready, 0, f"{i}, {size} bytes") for i, (ready, size) in enumerate(((5, 100), (19, 40), (19, 64))))
        yield from (at("before_update", start, 3, str(i)) for i, start in enumerate((30, 35, 40)))
        yield at("sgd_step %3 of x", 33, 2, "", "instruction")
        yield at("step", 0, 50, "8", "step")
    # a span that is no part of a step
    yield span(rank, "matmul %2 of gradient of x", 5000, 9, "", "instruction")


class Recording(unittest.TestCase):
    def test_a_profile_from_a_trace(self):
        found = recording.profile_of([{"ph": "M", "pid": 0}, *trace(0), *trace(1)])
        self.assertEqual(found["gradients"], [[100, 5e-6], [40, 19e-6]])
        self.assertEqual((found["batch"], found["forward"], found["backward"], found["update"]), (8, 10e-6, 20e-6, 11e-6))
        self.assertEqual((found["weight_bytes"], found["overlap"], set(found["spread"])), (204, False, {1}))

    def test_ranks_that_differ_are_the_spread(self):
        spread = recording.profile_of([*trace(0), *trace(1, slower=3)])["spread"]
        self.assertEqual(spread, [0.5] * 3 + [1.5] * 3)  # the first step of each rank is left out

    def test_many_ratios_are_thinned(self):
        self.assertEqual(recording.thinned(range(1000, -1, -1)), list(range(0, 1001, 10)))
        self.assertEqual(recording.thinned([3, 1, 2]), [1, 2, 3])

    def test_short_steps_do_not_count(self):
        events = list(trace())
        for step in [event for event in events if event["name"] == "step"][2:]:
            step.update(args={"detail": "3"}, dur=45)
        found = recording.profile_of(events)
        self.assertEqual((found["batch"], found["update"]), (8, 11e-6))

    def test_a_trace_without_an_exchange(self):
        with self.assertRaisesRegex(Mistake, "shows no exchange of gradients"):
            recording.profile_of([event for event in trace() if event["name"] != "gradients_ready"])

    def test_what_is_exchanged(self):
        self.assertEqual(recording.exchange_share(list(trace())), (9 / 50, 0))
        early = [dict(event, ts=event["ts"] - 13) if event["name"] == "before_update" else event for event in trace()]
        # exchanges begin at 17, 22 and 27 us; computation ends at 29
        self.assertEqual(recording.exchange_share(early), (9 / 50, 8 / 9))
        server = [event for event in trace() if event["name"] != "gradients_ready"]
        self.assertEqual(recording.exchange_share(server), (9 / 50, None))


    def test_what_the_file_says_does_not_count(self):
        for program, expected in ((["mlp", "a.yaml"], ["mlp", "a.yaml", "--set", "distributed={}"]),
                                  (["taskset", "1", "mlp", "a.yaml", "--set=x=1"], ["taskset", "1", "mlp", "a.yaml", "--set", "distributed={}", "--set=x=1"])):
            self.assertEqual(recording.without_section(program, "distributed"), expected)
        words = recording.own_settings("--record", ["mlp", "--set", "data.path=--set"], ["output.dir=", "distributed.overlap=off"])
        self.assertEqual(words, ["--set", "output.dir=", "--set", "distributed.overlap=off"])
        with self.assertRaisesRegex(Mistake, "--set output=.dir: run.: --record sets keys of this section; set the others one by one, as in --set output.KEY=VALUE"):
            recording.own_settings("--record", ["mlp", "--set", "output={dir: run}"], ["output.dir="])
        with self.assertRaisesRegex(Mistake, "--set distributed.overlap=on would have no effect, because --record sets this key; leave it out"):
            recording.own_settings("--record", ["mlp", "--set", "distributed.overlap=on"], ["distributed.overlap=off"])


class Measuring(unittest.TestCase):
    """Tests with fake runs, in which twice as many ranks take 0.75 times as long."""

    exchange = {}  # what the log says about the exchange

    def measure(self, *arguments, program=("mlp", "iris.yaml")):
        self.commands = []

        def start(options, case, words):
            self.commands.append(" ".join(words))
            if "--log" in words:
                epochs = [{"event": "epoch", "seconds": seconds * 0.75 ** math.log2(case.ranks), "val_loss": 1, "val_accuracy": 0.9, **self.exchange}
                          for seconds in (9, 2)]
                Path(words[words.index("--log") + 1]).write_text("\n".join(map(json.dumps, [{"event": "step"}, *epochs])))
            else:
                Path(words[words.index("--profile") + 1]).write_text(json.dumps({"traceEvents": list(trace())}))
            return "833 parameters, 1,200 samples of 3 classes"

        saved, measuring.start = measuring.start, start
        self.addCleanup(setattr, measuring, "start", saved)
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            options = self.parse("--measure", folder, *arguments, *program)
            measuring.run(options)
            self.printed = printed.getvalue()
            with open(f"{folder}/scaling.csv") as file:
                rows = list(csv.DictReader(file))
            self.pictures = {path.name: path.read_text() for path in Path(folder).glob("*.svg")}
            self.said = Path(folder, "scaling.md").read_text()
        return rows

    @staticmethod
    def parse(*words):
        spec = importlib.util.spec_from_loader("scaling", importlib.machinery.SourceFileLoader("scaling", str(ROOT / "tools/scaling")))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.parse(words)[1]

    def test_speed_up_and_efficiency(self):
        rows = self.measure("--ranks", "1,2,4", "--strategies", "allreduce,local/ring", "--rounds", "3")
        self.assertEqual([(row["strategy"], row["ranks"]) for row in rows],
                         [("one rank", "1"), ("allreduce", "2"), ("allreduce", "4"), ("local/ring", "2"), ("local/ring", "4")])
        self.assertAlmostEqual(float(rows[0]["samples_per_second"]), 600)
        self.assertAlmostEqual(float(rows[2]["speed_up"]), 16 / 9)
        self.assertAlmostEqual(float(rows[2]["efficiency"]), 16 / 9 / 4)
        self.assertAlmostEqual(float(rows[1]["exchange"]), 9 / 50)
        self.assertEqual((rows[0]["exchange"], rows[1]["overlap"], rows[1]["accuracy"]), ("", "0.0", "0.9"))
        self.assertEqual(len(self.commands), 3 * (1 + 4 * 2))  # includes a run for the trace
        self.assertIn("-n 4 mlp iris.yaml --set output.dir= --set distributed.strategy=local --set distributed.algorithm=ring --log", self.commands[7])
        self.assertIn("-n 2 mlp iris.yaml --set output.dir= --set distributed.strategy=allreduce --set distributed.algorithm=auto --log", self.commands[1])
        self.assertIn("-n 1 mlp iris.yaml --set output.dir= --log", self.commands[0])
        self.assertIn("--strategies decides (allreduce,local/ring); distributed.strategy and distributed.algorithm of the file do not count\n", self.printed)
        self.assertEqual(set(self.pictures), {"accuracy.svg", "course.svg", "efficiency.svg", "speed_up.svg", "timelines.svg"})
        self.assertNotRegex(self.said, "of ideal|to target|batch|idle|waited for|exchanged|sent")
        self.assertIn("| allreduce  | 4     | 1,067     | 1.78     | 44.4 %", self.said)

    def test_without_one_rank_the_fewest_are_the_measure(self):
        rows = self.measure("--ranks", "2,4", "--trace-steps", "0")
        self.assertAlmostEqual(float(rows[0]["speed_up"]), 2)
        self.assertAlmostEqual(float(rows[1]["speed_up"]), 2 / 0.75)
        self.assertEqual(len(self.commands), 2)

    def test_weak_and_strong_scaling(self):
        self.measure("--ranks", "1,4", "--strategies", "allreduce,send-recv", "--batch", "8", "--samples", "100", "--trace-steps", "0")
        self.assertIn("training.batch_size=8 --set data.limit=100 ", self.commands[0])
        self.assertIn("training.batch_size=32 --set data.limit=400 ", self.commands[1])
        # the server does not train
        self.assertIn("training.batch_size=24 --set data.limit=300 ", self.commands[2])
        self.measure("--ranks", "4", "--global-batch", "64", "--strategies", "async-server", "--every", "4", "--trace-steps", "0")
        self.assertIn("distributed.push_every=4 --set training.batch_size=64 ", self.commands[0])

    def test_several_batch_sizes(self):
        """Each case is compared with one rank at the same batch size."""
        rows = self.measure("--ranks", "1,2", "--global-batch", "64,16", "--trace-steps", "0")
        self.assertEqual([(row["strategy"], row["batch"]) for row in rows], [("one rank", "64"), ("allreduce", "64"), ("one rank", "16"), ("allreduce", "16")])
        self.assertEqual([word for command in self.commands for word in command.split() if "batch_size" in word],
                         [f"training.batch_size={size}" for size in (64, 64, 16, 16)])
        self.assertAlmostEqual(float(rows[3]["speed_up"]), 4 / 3)
        self.assertIn("allreduce, batch 16", self.pictures["accuracy.svg"])
        self.assertIn("| allreduce | 2     | 16    |", self.said)
        self.measure("--ranks", "2", "--strategies", "allreduce,send-recv", "--batch", "8,4", "--trace-steps", "0")
        self.assertEqual([command.split("batch_size=")[1].split()[0] for command in self.commands], ["16", "8", "8", "4"])

    def test_numbers_of_ranks_that_train(self):
        rows = self.measure("--trainers", "1,4", "--strategies", "allreduce,send-recv", "--trace-steps", "0")
        self.assertEqual([(row["strategy"], row["ranks"]) for row in rows], [("one rank", "1"), ("allreduce", "4"), ("send-recv", "5")])
        rows = self.variants('{"two": {"strategy": "downpour", "set": {"distributed.servers": 2}}}', "--trainers", "4", "--batch", "8", "--trace-steps", "0")
        self.assertEqual(rows[0]["ranks"], "6")
        self.assertIn("distributed.servers=2 --set training.batch_size=32 ", self.commands[0])
        self.measure("--trainers", "4", "--strategies", "downpour", "--trace-steps", "0")
        # these override the file
        self.assertIn("--set distributed.strategy=downpour --set distributed.servers=1 ", self.commands[0])
        with self.assertRaisesRegex(Mistake, "--ranks and --trainers exclude each other"):
            self.measure("--trainers", "4", "--ranks", "4")
        with self.assertRaisesRegex(Mistake, "two with 2 ranks: 2 of them serve, so that none trains; name more in --ranks"):
            self.variants('{"two": {"strategy": "downpour", "set": {"distributed.servers": 2}}}', "--ranks", "2")

    def test_how_long_ranks_wait_and_for_whom(self):
        self.exchange = {"waited_share": 0.25, "straggler": 3, "exchange_bytes": 5_000_000, "exchange_bytes_sent": 2000}
        row = self.measure("--ranks", "4", "--trace-steps", "0")[0]
        self.assertEqual((row["idle"], row["straggler"], row["exchanged"], row["sent"]), ("0.25", "3", "5000000", "2000"))
        self.assertIn("| idle   | waited for | exchanged | sent  |", self.said)
        self.assertIn("| 25.0 % | rank 3     | 5,000,000 | 2,000 |", self.said)

    def variants(self, text, *arguments):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(text)
            file.flush()
            return self.measure("--variants", file.name, *arguments)

    def test_variants(self):
        rows = self.variants('{"source": "me", "plain": {"strategy": "allreduce/ring", "set": {"distributed.bucket_bytes": 1}},'
                             ' "+ LARS": {"strategy": "local", "set": {"training.optimizer": {"name": "lars"}}}}', "--ranks", "1,2", "--trace-steps", "0")
        self.assertEqual([row["strategy"] for row in rows], ["one rank", "plain", "+ LARS"])
        self.assertIn("distributed.strategy=allreduce --set distributed.algorithm=ring --set distributed.bucket_bytes=1 --log", self.commands[1])
        self.assertIn('distributed.algorithm=auto --set training.optimizer={"name": "lars"} --log', self.commands[2])
        for text, expected in (("{}", "name one variant or more"), ('{"source": {"strategy": "local"}}', "source is free text; give the variant another name"),
                               ('{"a": {"set": {}}}', "a: the key 'strategy' is missing"),
                               ('{"a": {"strategy": "x"}}', "a: strategy: there is no strategy 'x'"), ('{"a": {"strategy": "local", "b": 1}}', "unknown key 'b'"),
                               ('{"a": {"strategy": "local", "set": 1}}', "a: set is 1; write an object"),
                               ('{"a": {"strategy": "local", "set": {"output.dir": "x"}}}', "a: output.dir is set by the strategy or by an option of --measure, too")):
            with self.assertRaisesRegex(Mistake, expected):
                self.variants(text)
        with self.assertRaisesRegex(Mistake, "--bucket-bytes is for allreduce, .*, or name one of these in --variants"):
            self.variants('{"a": {"strategy": "local"}}', "--bucket-bytes", "4")
        with self.assertRaisesRegex(Mistake, "--strategies and --variants exclude each other"):
            self.variants("{}", "--strategies", "local")
        ablation = str(ROOT / "examples/scaling/ablation.json")
        self.assertEqual(len(self.measure("--variants", ablation, "--ranks", "1,2", "--trace-steps", "0")), 7)

    def test_ranks_whose_pace_is_set(self):
        with tempfile.TemporaryDirectory() as build:
            program = Path(build, "models/mlp")
            for file in (program, Path(build, "tools/plexaura_paced.so")):
                file.parent.mkdir()
                file.touch()
            rows = self.measure("--ranks", "1,4", "--strategies", "allreduce,async-server", "--pace", "20", "--slow", "3", "--trace-steps", "0",
                                "--target", "0.9", program=("taskset", "1", str(program), "iris.yaml"))
            self.assertIn("--set output.dir= --set training.tuning=off --backend paced:times=20 --log", self.commands[0])
            self.assertIn("--backend paced:times=20,slow=3,slow_rank=3 --log", self.commands[1])
            self.assertEqual(measuring.pacing.environment(self.parse("--measure", "x", "--pace", "2", str(program)))["PLEXAURA_PLUGIN_PATH"].split(":")[0],
                             str(Path(build, "tools").resolve()))
            for one in (("--ranks", "1"), ("--ranks", "2", "--strategies", "async-server"), ("--trainers", "1")):
                with self.assertRaisesRegex(Mistake, f"--slow has no effect where one rank trains; leave it out, or name more in {one[0]}"):
                    self.measure(*one, "--pace", "20", "--slow", "3", program=(str(program), "iris.yaml"))
        found = [float(row["of_ideal"]) for row in rows]
        for value, expected in zip(found, (1, 16 / 9 / (10 / 3), 16 / 9 / (7 / 3))):
            self.assertAlmostEqual(value, expected)
        self.assertEqual(float(rows[0]["seconds_to_target"]), 9)
        self.assertIn("| 53.3 %   | 90.00 %  | 5.062 s   |", self.said)
        for arguments, expected in ((("--slow", "3"), "--slow is for ranks whose pace is set; give --pace, too"), (("--pace", "-1"), "--pace is -1; it must be 0"),
                                    (("--pace", "2", "--slow", "0.5"), "--slow is 0.5; it must be 1 or more"), (("--target", "90"), "--target is 90; it must be"),
                                    (("--pace", "2"), "--pace needs plexaura_paced.so in the folder tools of the build that PROGRAM belongs to")):
            with self.assertRaisesRegex(Mistake, expected):
                self.measure(*arguments)

    def test_a_target_that_some_rounds_have_not_reached(self):
        for reached, expected in (((3, 5, 4), 4), ((3, None, 4), 4), ((3, None, None), None), ((3, None), None)):
            case = SimpleNamespace(rounds=[{"seconds_to_target": seconds} for seconds in reached])
            self.assertEqual(measuring.seconds_to_target_of(case), expected)

    def test_a_key_that_a_measurement_sets_is_not_set_otherwise(self):
        for arguments, words in (((), ("--set", "distributed.strategy=local")), ((), ("--set=distributed.algorithm=ring",)), ((), ("--set", "output.dir=run")),
                                 (("--batch", "4"), ("--set", "training.batch_size=8")), (("--bucket-bytes", "1"), ("--set", "distributed.bucket_bytes=8"))):
            with self.assertRaisesRegex(Mistake, f"--set {words[-1].removeprefix('--set=')} would have no effect, because --measure sets this key"):
                self.measure(*arguments, program=("mlp", "iris.yaml", *words))
            self.assertEqual(self.commands, [])
        self.measure("--ranks", "2", "--strategies", "reduce-broadcast", program=("mlp", "iris.yaml", "--set", "training.batch_size=8"))
        self.assertIn("iris.yaml --set training.batch_size=8 --set output.dir= --set distributed.strategy=reduce-broadcast --log", self.commands[0])

    def test_what_is_wrong(self):
        for arguments, expected in ((("--samples", "5"), "--samples is for weak scaling"), (("--rounds", "0"), "--rounds must be 1 or more"),
                                    (("--every", "4"), "--every is for local, elastic, async-server, downpour; leave it out"),
                                    (("--strategies", "local", "--bucket-bytes", "4"), "--bucket-bytes is for allreduce, "),
                                    (("--bucket-bytes", "1.5"), "write a whole number of bytes"),
                                    (("--ranks", "1", "--strategies", "local"), "--strategies has no effect with one rank"),
                                    (("--ranks", "1", "--trace-steps", "5"), "--trace-steps has no effect with one rank"),
                                    (("--ranks", ""), "--ranks is empty; give it a value, or leave it out"),
                                    (("--batch", "1.5"), "write a whole number"), (("--ranks", "0"), "is not a list of numbers"),
                                    (("--strategies", "local/rings"), "there is no strategy 'local/rings'")):
            with self.assertRaisesRegex(Mistake, expected):
                self.measure(*arguments)


class Timelines(unittest.TestCase):
    def test_the_parts_of_a_step(self):
        found = timeline.of_step([*trace(1), *trace(2, slower=3)])
        self.assertEqual(found["seconds"], 50e-6)
        spans = [(part, round(begin * 1e6), round(end * 1e6)) for part, begin, end in found["spans"]]
        self.assertEqual(spans, [("forward", 0, 10), ("backward", 10, 29), ("update", 33, 35), ("exchange", 30, 33), ("exchange", 35, 38), ("exchange", 40, 43)])
        own = [span(1, "exchange", begin + 20, 8) for begin in (0, 1000, 2000, 3000)]
        spans = [(part, round(begin * 1e6), round(end * 1e6)) for part, begin, end in timeline.of_step([*trace(1), *own])["spans"]]
        # waits for an exchange do not count
        self.assertEqual([found for found in spans if found[0] == "exchange"], [("exchange", 20, 28)])
        self.assertIsNone(timeline.of_step([]))

    def test_they_are_drawn_on_one_scale(self):
        steps = {"naive": {"seconds": 2, "spans": [("forward", 0, 1), ("exchange", 1, 2)]}, "<wait-free>": {"seconds": 1, "spans": [("forward", 0, 1)]}}
        drawing = xml.dom.minidom.parseString(timeline.draw(steps))
        bars = [bar for bar in drawing.getElementsByTagName("rect") if bar.getAttribute("height") == "16"]
        self.assertEqual([(bar.getAttribute("x"), bar.getAttribute("width")) for bar in bars], [("170.0", "355.0"), ("525.0", "355.0"), ("170.0", "355.0")])
        self.assertLess(bars[0].getAttribute("y"), bars[1].getAttribute("y"))


class Pictures(unittest.TestCase):
    def test_values_lie_where_the_axis_says(self):
        drawing = xml.dom.minidom.parseString(plot.draw("<A>", "%", {"a": [(4, 100), (1, 50)], "b": [(2, 20)]}))
        points = drawing.getElementsByTagName("polyline")[0].getAttribute("points").split()
        self.assertEqual(points, ["70.0,215.0", "550.0,40.0"])
        self.assertEqual(drawing.getElementsByTagName("text")[0].firstChild.data, "<A>")

        drawing = xml.dom.minidom.parseString(plot.draw("A", "%", {"a": [(1, 10), (2, 100), (4, 1000)]}, logarithmic=True))
        points = drawing.getElementsByTagName("polyline")[0].getAttribute("points").split()
        self.assertEqual(points, ["70.0,390.0", "310.0,215.0", "550.0,40.0"])

    def test_an_axis_of_time_begins_at_zero(self):
        drawing = xml.dom.minidom.parseString(plot.draw("A", "%", {"a": [(4, 100), (1, 50)]}, across="seconds"))
        points = drawing.getElementsByTagName("polyline")[0].getAttribute("points").split()
        self.assertEqual(points, ["190.0,215.0", "550.0,40.0"])
        words = [node.firstChild.data for node in drawing.getElementsByTagName("text")]
        self.assertEqual(words[2:5], ["seconds", "0", "0.5"])

    def test_numbers_with_units(self):
        self.assertEqual([report.duration(value) for value in (7199, 7200, 172_799, 172_800)], ["120 min", "2 h", "48 h", "2 days"])
        self.assertEqual([report.seconds(value) for value in (100, 0.25, 0.5e-6)], ["100 s", "250 ms", "0.5 µs"])

    def test_ticks(self):
        self.assertEqual(plot.Axis([0, 100], 0, 1, from_zero=True).ticks(), [0, 20, 40, 60, 80, 100])
        self.assertAlmostEqual(plot.Axis([98.6, 99.1], 0, 1).ticks()[0], 98.6)
        self.assertEqual(plot.Axis([20, 30000], 0, 1, logarithmic=True).ticks(), [100, 1000, 10000])
        self.assertEqual(len(plot.Axis([5], 0, 1).ticks()), 8)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
