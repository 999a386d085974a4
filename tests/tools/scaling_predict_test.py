#!/usr/bin/env python3
"""Compares predictions of tools/scaling with sums that can be done by hand.

usage: scaling_predict_test.py ROOT
"""

import csv
import json
import math
import random
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom
from dataclasses import replace
from pathlib import Path

ROOT = Path(sys.argv[1])
EXAMPLES = ROOT / "examples/scaling"
sys.path.insert(0, str(ROOT / "tools" / "scaling_parts"))

from exchange import Group, blocks_of_a_host, broadcast, gather_at_root, root_seconds, sum_seconds  # noqa: E402
from inputs import Bucket, Link, Links, Mistake, Profile, Spread, Step, make_links, make_profile, read  # noqa: E402
from step import CHOICES, Setting, fastest, goodput, predict, steps_to_report  # noqa: E402

MB = 1_000_000
LINKS = Links(4, Link(0, 1000 * MB), Link(0, 100 * MB))
PROFILE = Profile(batch=10, forward=1, backward=2, update=0.5, gradients=(Bucket(60 * MB, 0.5), Bucket(40 * MB, 2)), weight_bytes=100 * MB)


def seconds(choice, ranks, profile=PROFILE, links=LINKS, **setting):
    return predict(Step([profile]), choice, ranks, links, Setting(bucket_bytes=1, **setting), profile.batch, profile.batch).seconds


class Exchange(unittest.TestCase):
    def test_bytes_that_the_link_carries(self):
        """100 MB over 100 MB/s."""
        eight = Group(8, LINKS)  # two hosts
        self.assertAlmostEqual(sum_seconds("hierarchical", eight, 100 * MB), 1, places=3)
        self.assertAlmostEqual(sum_seconds("ring", eight, 100 * MB), 2 * 7 / 8, places=2)
        self.assertAlmostEqual(sum_seconds("window", Group(4, LINKS), 100 * MB), 2 * 3 / 4 * 0.1)
        alone = Group(16, Links(1, LINKS.inside, LINKS.between))
        self.assertAlmostEqual(sum_seconds("tree", alone, 100 * MB), 4, delta=0.1)  # rank 0 has four children
        self.assertAlmostEqual(sum_seconds("hierarchical", alone, 100 * MB), 2 * 15 / 16)
        far = Group(2, Links(1, LINKS.inside, Link(0.1, 100 * MB)))  # nine messages of 60 KiB in each tenth of a second
        self.assertAlmostEqual(sum_seconds("hierarchical", far, 100 * MB), 3 * 0.1 + 100 * MB / (9 * 60 * 1024) * 0.1)

        threes = Group(6, Links(3, Link(0, 1e30), LINKS.between))  # two blocks on each host
        self.assertAlmostEqual(sum_seconds("hierarchical", threes, 100 * MB), 1.5)

    def test_a_tree_from_rank_0(self):
        alone = Group(16, Links(1, LINKS.inside, Link(1, 100 * MB)))
        # the time in which three levels wait for their first piece
        self.assertAlmostEqual(broadcast(alone, 100 * MB), 2 + 4 + 4 + 6 * 60 * 1024 / (100 * MB))
        self.assertAlmostEqual(gather_at_root(alone, 100 * MB, 16), 2 + 15 * 1 + 15 * 96 + 1.6)  # in 96 pieces

    def test_small_arrays_are_read_as_a_whole(self):
        for size, seconds in ((8000, 4 * 8000), (10_000, 1.5 * 10_000)):
            self.assertAlmostEqual(sum_seconds("window", Group(4, LINKS), size), seconds / (1000 * MB))

    def test_a_share_of_the_bandwidth_is_reached(self):
        links = replace(LINKS, reached={"ring": 0.5, "root": 0.8})
        eight, plain = Group(8, links), Group(8, LINKS)
        self.assertAlmostEqual(sum_seconds("ring", eight, 100 * MB), 2 * sum_seconds("ring", plain, 100 * MB))
        self.assertAlmostEqual(sum_seconds("tree", eight, 100 * MB), sum_seconds("tree", plain, 100 * MB))
        self.assertAlmostEqual(root_seconds(eight, 100 * MB, 8, True), 0.3 + 4 / 0.8 + 0.8 + 1 / 0.8)
        self.assertAlmostEqual(sum_seconds("ring", Group(4, links), 100 * MB), 2 * 3 / 4 * 0.1)  # on one host

    def test_latency_counts_where_bytes_do_not(self):
        links = Links(1, Link(0, 1e30), Link(1, 1e30))
        meet = 2
        self.assertAlmostEqual(sum_seconds("hierarchical", Group(16, links), 64), meet + 2)
        self.assertAlmostEqual(sum_seconds("tree", Group(16, links), 64), meet + 8)
        self.assertAlmostEqual(sum_seconds("ring", Group(16, links), 64), meet + 30)
        self.assertAlmostEqual(sum_seconds("mpi", Group(16, links), 64), meet + 4)

    def test_rank_0_hears_all_others(self):
        links = Links(1, Link(0, 1e30), Link(0, 1e30), message=1e-3)
        self.assertAlmostEqual(Group(1001, links).meet(), 2)

    def test_hosts_with_six_ranks_send_more(self):
        self.assertEqual([blocks_of_a_host(64, count) for count in (1, 2, 4, 8)], [1, 1, 1, 1])
        self.assertEqual(blocks_of_a_host(6, 3), 2)  # 0 + 1 and 2, as docs/reference/distributed.md says
        self.assertEqual(blocks_of_a_host(7, 7), 1)


class StepOfManyRanks(unittest.TestCase):
    def test_exchange_behind_the_backward_pass(self):
        self.assertAlmostEqual(seconds("allreduce/hierarchical", 8), 3.5 + 1, places=2)

    def test_exchange_during_the_backward_pass(self):
        """60 MB are sent from 1.5 to 2.1 s, 40 MB from 3 to 3.4 s. The update of the first bucket waits for
        the device."""
        found = predict(Step([PROFILE]), "allreduce/hierarchical", 8, LINKS, Setting(1, overlap=True), 10, 10)
        self.assertAlmostEqual(found.seconds, 3 + 0.4 + 0.2, places=2)
        self.assertAlmostEqual(found.overlap, 0.9, places=2)  # the step takes only 0.1 s longer
        self.assertAlmostEqual(found.efficiency, 3.5 / 3.6, places=2)

    def test_updates_follow_each_other(self):
        profile = replace(PROFILE, update=5, overlap=True)
        self.assertAlmostEqual(seconds("allreduce/hierarchical", 8, profile), 3 + 5, places=2)

    def test_one_rank_has_another_batch(self):
        """With half of the samples, each of two ranks computes for 1.5 s. The update takes as long as before.
        """
        found = predict(Step([PROFILE]), "allreduce/window", 2, Links(2, Link(0, 1e30), Link(0, 1e30)), Setting(), 5, 10)
        self.assertAlmostEqual(found.seconds, 1.5 + 0.5)
        self.assertAlmostEqual(found.efficiency, 3.5 / 2 / 2)

    def test_buffers_are_exchanged_last(self):
        profile = replace(PROFILE, weight_bytes=150 * MB)
        self.assertAlmostEqual(seconds("allreduce/hierarchical", 8, profile), 3.5 + 1.5, places=2)

    def test_one_bucket_waits_for_the_whole_backward_pass(self):
        found = predict(Step([PROFILE]), "allreduce/hierarchical", 8, LINKS, Setting(100 * MB, overlap=True), 10, 10)
        self.assertAlmostEqual(found.seconds, 3 + 1 + 0.5, places=2)

    def test_a_server_takes_in_everything(self):
        eight = [seconds(choice, 8) for choice in ("reduce-broadcast", "send-recv", "scatter-gather")]
        gather = 3 * 0.1 + 4 * 1  # three ranks of the root's host, four of the other
        added = 0.8
        down = 1
        self.assertAlmostEqual(eight[0], 3.5 + gather + added + down, places=2)
        self.assertAlmostEqual(eight[1], eight[0] - 0.1, places=2)
        self.assertAlmostEqual(eight[2], eight[0], places=2)

    def test_a_server_that_does_not_train_is_a_rank_less(self):
        found = predict(Step([PROFILE]), "send-recv", 2, Links(2, Link(0, 1e30), Link(0, 1e30)), Setting(), 10, 10)
        self.assertAlmostEqual(found.efficiency, 0.5)

    def test_weights_are_averaged_now_and_then(self):
        self.assertAlmostEqual(seconds("local/hierarchical", 8, every=4), 3.5 + 1 / 4, places=2)
        self.assertAlmostEqual(seconds("elastic/hierarchical", 8, every=1), 3.5 + 1, places=2)
        self.assertEqual([steps_to_report(replace(PROFILE, forward=seconds, backward=0, update=0)) for seconds in (1e-9, 0.1, 7)], [1000, 10, 1])

    def test_the_samples_that_rank_0_deals_out(self):
        profile = replace(PROFILE, sample_bytes=100 * MB)
        # 4 ranks on other hosts, 10 samples of a second each
        self.assertGreater(seconds("scatter-gather", 8, profile), 40)

    def test_slow_ranks_hold_up_those_that_wait(self):
        profile = replace(PROFILE, slow=(3,), weight_bytes=1)
        links = Links(5, Link(0, 1e30), Link(0, 1e30))
        for choice, speed in (("allreduce/window", 5 / 3), ("local/window", 5 / 3), ("async-server", 3 + 1 / 3), ("downpour", 3 + 1 / 3)):
            found = predict(Step([profile]), choice, 5, links, Setting(), 10, 10)
            self.assertAlmostEqual(found.efficiency * 5, speed, places=3, msg=choice)

    def test_the_link_of_the_server_bounds_all(self):
        """In 8 steps, each push of 100 MB takes a second, and mixing it in takes 0.2 s."""
        rate = predict(Step([PROFILE]), "async-server", 101, Links(1, LINKS.inside, LINKS.between), Setting(every=8), 10, 10).samples_per_second
        self.assertAlmostEqual(rate, 8 * 10 / 1.2, places=3)

    def test_where_a_strategy_cannot_work(self):
        for choice, ranks in (("allreduce/window", 5), ("allreduce/window", 1), ("async-server", 1)):
            self.assertIsNone(predict(Step([PROFILE]), choice, ranks, LINKS, Setting(), 10, 10))

    def test_the_fastest_is_named(self):
        found = [predict(Step([PROFILE]), choice, 8, LINKS, Setting(1), 10, 10) for choice in CHOICES]
        self.assertEqual(fastest(found, only_exact=True).choice, "allreduce/hierarchical")
        self.assertEqual(fastest(found).choice.split("/")[0], "local")


class Inputs(unittest.TestCase):
    def test_the_slowest_of_many(self):
        source = random.Random(1)
        ratios = Spread(ratios=tuple(sorted(source.lognormvariate(0, 0.1) for _ in range(500))))
        normal = Spread(sigma=0.1)
        for spread in (ratios, normal):
            drawn = sum(max(spread.quantile(source.random()) for _ in range(16)) for _ in range(4000)) / 4000
            self.assertAlmostEqual(spread.slowest_of(16), drawn, delta=0.005)
            self.assertAlmostEqual(spread.slowest_of(1), spread.mean(), delta=0.005)
        self.assertEqual(Spread().slowest_of(4096), 1)

    def test_ranks_that_vary_slow_a_step_down_and_give_it_bounds(self):
        profile = replace(PROFILE, spread=Spread(sigma=0.1))
        links = Links(64, Link(0, 1e30), Link(0, 1e30))
        found = predict(Step([profile]), "allreduce/window", 64, links, Setting(), 10, 10)
        self.assertAlmostEqual(found.seconds, 3.5 * profile.spread.slowest_of(64))
        apart = predict(Step([replace(profile, forward=0.01, backward=0.01, update=0.005, weight_bytes=0)]), "local/window", 64, links, Setting(every=16), 10, 10)
        self.assertAlmostEqual(apart.seconds, 0.025 * (profile.spread.mean() + (profile.spread.slowest_of(64) - profile.spread.mean()) / 4))
        free = predict(Step([replace(profile, weight_bytes=1)]), "async-server", 64, links, Setting(), 10, 10)
        self.assertAlmostEqual(free.efficiency, 63 / 64)
        self.assertLess(found.low, found.seconds)
        self.assertLess(found.seconds, found.high)

    def test_buckets_are_cut_as_the_programs_cut_them(self):
        profile = replace(PROFILE, gradients=tuple(Bucket(size, size) for size in (1, 2, 3, 4, 5)))
        self.assertEqual([b.bytes for b in profile.fused(3).gradients], [3, 3, 4, 5])
        self.assertEqual([(b.bytes, b.ready) for b in profile.fused(6).gradients], [(6, 3), (9, 5)])
        self.assertEqual([(b.bytes, b.ready) for b in profile.fused(7).gradients], [(10, 4), (5, 5)])

    def test_other_batches(self):
        half = Step([PROFILE]).at(5)
        self.assertEqual((half.forward, half.backward, half.update, half.gradients[0].ready), (0.5, 1, 0.5, 0.25))
        other = replace(PROFILE, batch=20, forward=1.5, gradients=(Bucket(60 * MB, 1.5), Bucket(40 * MB, 2)))
        line = Step([other, PROFILE]).at(40)
        self.assertEqual((line.forward, line.gradients[0].ready, line.gradients[1].ready), (2.5, 3.5, 2))

    def test_goodput(self):
        share, interval = goodput(100, 100, 5, 60)
        self.assertAlmostEqual(interval, math.sqrt(2 * 5 * 3600) - 5)
        source, mean, elapsed, done = random.Random(3), 3600, 0.0, 0
        while done < 50_000:  # pieces of work, each followed by its checkpoint
            failure = source.expovariate(1 / mean)
            if failure > interval + 5:
                done, elapsed = done + 1, elapsed + interval + 5
                continue
            elapsed += failure
            while (again := source.expovariate(1 / mean)) < 60:
                elapsed += again
            elapsed += 60
        self.assertAlmostEqual(share, done * interval / elapsed, delta=0.002)
        self.assertEqual(goodput(10**6, 0.001, 5, 60)[0], 0)


class Lecture(unittest.TestCase):
    """Tests the figures of examples/scaling: ResNet-50 on up to 2,048 GPUs."""

    def layers(self):
        """Returns the parameters and multiplications of each tensor, from the first layer on."""
        yield 64 * 3 * 49, 64 * 3 * 49 * 112**2
        yield 128, 0
        size, into = 56, 64
        for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            for block in range(blocks):
                out = size // 2 if stage > 0 and block == 0 else size
                convolutions = [(into, 1, width, size), (width, 9, width, out), (width, 1, 4 * width, out), (into, 1, 4 * width, out)]
                for channels, kernel, outputs, pixels in convolutions[:4 if block == 0 else 3]:
                    weights = channels * kernel * outputs
                    yield weights, weights * pixels**2
                    yield 2 * outputs, 0
                into, size = 4 * width, out
        yield 2048 * 1000 + 1000, 2048 * 1000

    def test_where_the_profile_comes_from(self):
        layers = list(self.layers())
        self.assertEqual(sum(parameters for parameters, _ in layers), 25_557_032)
        profile = json.loads((EXAMPLES / "resnet50_gpu.json").read_text())
        step, whole, done = 64 / 218, sum(products for _, products in layers), 0
        self.assertAlmostEqual(profile["forward"], step / 3, places=6)
        self.assertAlmostEqual(profile["backward"], step * 2 / 3, places=6)
        self.assertEqual(len(profile["gradients"]), len(layers))
        for (parameters, products), (size, ready) in zip(reversed(layers), profile["gradients"]):
            done += products
            self.assertEqual(size, 2 * parameters)
            self.assertAlmostEqual(ready, step * 2 / 3 * done / whole, places=6)

    def test_weak_scaling_lands_near_what_was_published(self):
        step = Step([read(EXAMPLES / "resnet50_gpu.json", make_profile)])
        links = read(EXAMPLES / "hosts_of_8_gpus.json", make_links)
        found = predict(step, "allreduce/hierarchical", 1024, links, Setting(), 64, 64)
        self.assertTrue(0.986 - 0.05 < found.efficiency < 0.992 + 0.05, found)


class Command(unittest.TestCase):
    def scaling(self, *arguments, status=0):
        done = subprocess.run([ROOT / "tools/scaling", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout if status == 0 else done.stderr

    def predict(self, *arguments):
        return self.scaling("--predict", EXAMPLES / "resnet50_gpu.json", "--links", EXAMPLES / "hosts_of_8_gpus.json", *arguments)

    def test_2_to_4096_ranks(self):
        said = self.predict("--mtbf", 20000)
        self.assertRegex(said, r"(?m)^\| 4096 +\| allreduce/hierarchical ")
        self.assertRegex(said, r"(?m)^\| async-server \* ")
        self.assertRegex(said, r"(?m)^\| 2048 +\| 9.77 h +\| 9.8 min +\| 98.2 % ")

    def test_files_of_results(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "new"
            said = self.predict("--out", out, "--ranks", "2,16,1024", "--strategies", "allreduce,send-recv")
            self.assertEqual((out / "scaling.md").read_text(), said)
            with (out / "scaling.csv").open() as file:
                rows = list(csv.DictReader(file))
            self.assertEqual(len(rows), 1 + 3 * 5)  # window runs on 2 ranks only
            self.assertEqual({row["ranks"] for row in rows}, {"2", "16", "1024"})
            for name in ("efficiency.svg", "rate.svg"):
                drawing = xml.dom.minidom.parse(str(out / name))
                self.assertEqual(len(drawing.getElementsByTagName("polyline")), 6)

    def test_nothing_is_printed_where_results_cannot_be_written(self):
        command = [ROOT / "tools/scaling", "--predict", EXAMPLES / "resnet50_gpu.json", "--links", EXAMPLES / "hosts_of_8_gpus.json", "--ranks", "2"]
        with tempfile.NamedTemporaryFile() as file:
            for out, says in ((file.name, f"cannot write '{file.name}': File exists"), ("/proc", "cannot write '/proc/scaling.csv': No such file or directory")):
                done = subprocess.run([*map(str, command), "--out", out], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"scaling: {says}; name another place\n"))

    def test_strong_scaling(self):
        said = self.predict("--global-batch", 65536, "--ranks", "1024,2048", "--strategies", "allreduce/hierarchical")
        weak = self.predict("--ranks", "1024", "--strategies", "allreduce/hierarchical")
        self.assertIn(weak.splitlines()[2].split("|")[4], said)  # samples a second with 64 samples of a rank
        self.assertIn("160.4 ms", said)

    def test_options_of_a_prediction(self):
        choices = ("--ranks", "1024", "--strategies", "allreduce/hierarchical,local/hierarchical")
        for options, exact, free in (((), "97.2 %", "99.5 %"), (("--overlap", "no"), "95.1 %", "99.5 %"),
                                     (("--bucket-bytes", "4e6"), "98.2 %", "99.5 %"), (("--every", "64"), "97.2 %", "99.7 %")):
            said = self.predict(*choices, *options)
            self.assertRegex(said, rf"(?m)^\| allreduce/hierarchical +\| {exact}")
            self.assertRegex(said, rf"(?m)^\| local/hierarchical \* +\| {free}")
        self.assertEqual(self.predict(*choices), self.scaling(f"--predict={EXAMPLES / 'resnet50_gpu.json'}", f"--links={EXAMPLES / 'hosts_of_8_gpus.json'}", *choices))

    def test_strong_scaling_is_compared_with_one_rank_that_has_all(self):
        """Half of a step does not depend on the number of samples."""
        with tempfile.TemporaryDirectory() as folder:
            profile, links = Path(folder, "profile.json"), Path(folder, "links.json")
            profile.write_text(json.dumps({"batch": 4, "forward": 0.25, "backward": 0.25, "update": 1, "gradients": [[4, 0.25]]}))
            links.write_text(json.dumps({"ranks_per_host": 8, **{key: {"latency": 0, "bandwidth": 1e9} for key in ("inside", "between")}}))
            said = self.scaling("--predict", profile, "--links", links, "--global-batch", 8, "--ranks", 4, "--strategies", "allreduce/window")
        self.assertIn("| 40.0 %", said)  # (1 + 1) / (1 / 4 + 1) / 4

    def test_what_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            def file(name, **changes):
                path = Path(folder) / f"{len(list(Path(folder).iterdir()))}.json"
                values = {**json.loads((EXAMPLES / name).read_text()), **changes}
                path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
                return path

            profile, links = EXAMPLES / "resnet50_gpu.json", EXAMPLES / "hosts_of_8_gpus.json"
            text = Path(folder) / "text.json"
            text.write_text("{")
            deep = Path(folder) / "deep.json"
            deep.write_text("[" * 200_000)
            twins = Path(folder) / "twins.json"
            twins.write_text('{"batch": 1, "batch": 2}')
            wrong = [
                ((), "give one of --predict, --record and --measure; for example"),
                (("--predict", profile), "--predict needs --links"),
                (("--predict", profile, "--links", links, "--checkpoint-seconds", 5), "--checkpoint-seconds is for the goodput; give --mtbf, too"),
                (("--predict", profile, "--links", links, "--restart-seconds", 5), "--restart-seconds is for the goodput; give --mtbf, too"),
                (("--predict", profile, "--links", links, "--ranks", ""), "--ranks is empty; give it a value, or leave it out"),
                (("--predict", profile, "--links", links, "--out="), "--out is empty"),
                (("--predict", profile, "--links", links, "--strategies", "allreduce,send-recv", "--every", 4), "--every is for local, elastic, async-server, downpour; leave it out, or"),
                (("--predict", profile, "--links", links, "--strategies", "downpour", "--overlap", "no"), "--overlap is for allreduce, "),
                (("--predict", profile, "--links", links, "--strategies", "local", "--bucket-bytes", 4), "--bucket-bytes is for allreduce, "),
                (("--predict", "none.json", "--links", links), "cannot read 'none.json': No such file"),
                (("--predict", text, "--links", links), "is no JSON"),
                (("--predict", twins, "--links", links), "the key 'batch' is there twice; remove one"),
                (("--predict", deep, "--links", links), "too many brackets inside each other"),
                (("--predict", links, "--links", links), "the key 'gradients' is missing"),
                (("--predict", file("resnet50_gpu.json", batch=10**400), "--links", links), "write a number between 1e-30 and 1e+30"),
                (("--predict", file("resnet50_gpu.json", slow=[1e308]), "--links", links), "slow is 1e+308; write a number between 1e-30 and 1e+30"),
                (("--predict", profile, "--links", file("hosts_of_8_gpus.json", message=1e308)), "message is 1e+308; write a number between"),
                (("--predict", file("resnet50_gpu.json", foward=1), "--links", links), "unknown key 'foward'; known are"),
                (("--predict", file("resnet50_gpu.json", batch="64"), "--links", links), "batch is '64'; write a number above 0"),
                (("--predict", file("resnet50_gpu.json", overlap=1), "--links", links), "overlap is 1; write true or false"),
                (("--predict", file("resnet50_gpu.json", gradients=[[1, 0.1], [1, 0]]), "--links", links), "in the order of their seconds"),
                (("--predict", file("resnet50_gpu.json", gradients=[[1, 9]]), "--links", links), "none after the end of the backward pass"),
                (("--predict", file("resnet50_gpu.json", gradients=[1]), "--links", links), "write pairs"),
                (("--predict", profile, "--links", file("hosts_of_8_gpus.json", inside=None)), "the key 'inside' is missing"),
                (("--predict", profile, "--links", file("hosts_of_8_gpus.json", ranks_per_host=1.5)), "write a whole number"),
                (("--predict", profile, "--links", file("hosts_of_8_gpus.json", between={"latency": 0, "bandwidth": 0})), "bandwidth is 0; write a number above 0"),
                (("--predict", profile, "--links", file("hosts_of_8_gpus.json", reached={"rings": 1})), "unknown key 'rings'; known are hierarchical"),
                (("--predict", profile, "--links", file("hosts_of_8_gpus.json", reached={"ring": 0})), "ring is 0; write a number above 0"),
                (("--predict", profile, "--links", file("hosts_of_8_gpus.json", reached={"ring": 2})), "ring is 2; write a share of the bandwidth, at most 1"),
                (("--predict", file("resnet50_gpu.json", spread=1000), "--links", links), "spread is 1000; write the sigma of a log-normal distribution, at most 10"),
                (("--predict", file("resnet50_gpu.json", slow=[0.5]), "--links", links), "slow is 0.5; write a number of 1 or more"),
                (("--predict", profile, profile, "--links", links), "two profiles must be of one model at two batch sizes"),
                (("--predict", profile, "--links", links, "--ranks", "2,x"), "--ranks: '2,x' is not a list of numbers"),
                (("--predict", profile, "--links", links, "--strategies", "alreduce"), "there is no strategy 'alreduce'; known are"),
                (("--predict", profile, "--links", links, "--ranks", "1"), "none of these strategies can work"),
                (("--predict", profile, "--links", links, "--mtbf", "-1"), "--mtbf must be above 0"),
                (("--predict", profile, "--links", links, "--ranks", "9" * 5000), "is not a list of numbers of ranks"),
                (("--predict", profile, "--links", links, "--every", "1" + "0" * 400), "--every must be between 1e-30 and 1e+30"),
                (("--predict", profile, "--links", links, "--batch", "1e-320"), "--batch must be between 1e-30 and 1e+30"),
                (("--predict", profile, "--links", links, "--every", "nan"), "--every: invalid int value: 'nan'"),
                (("--predict", profile, "--links", links, "--batch", 2, "--global-batch", 2), "give one of them"),
                (("--predict", profile, "--links", links, "--out", "/proc/here"), "cannot write '/proc/here'"),
                (("--predict", profile, "--links", links, "--rounds", 3), "unrecognized arguments: --rounds 3"),
                (("--record", "x.json", "--links", links), "unrecognized arguments: --links"),
                (("--predict", profile, "--record", "x.json"), "unrecognized arguments: --record"),
                (("--predct", profile), "unrecognized arguments: --predct"),
            ]
            for arguments, expected in wrong:
                said = self.scaling(*arguments, status=2)
                self.assertIn(expected, said)
                self.assertRegex(said, r"\Ascaling: [^\n]+\n\Z")

    def test_mistakes_are_found_in_the_parts_too(self):
        with self.assertRaises(Mistake):
            Step([PROFILE] * 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
