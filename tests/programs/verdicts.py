"""tools/why says what a run does, or why it ended: its kind, rank and step."""

import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import support
from support import BUILD, SOURCE, ProgramTest

sys.path.insert(0, str(SOURCE / "tools/run_parts"))

import events  # noqa: E402
from events import Kind  # noqa: E402
from verdict import judge  # noqa: E402

ENDLESS = ("output.dir=run", "training.epochs=1000000", "distributed.deadline_seconds=3")


class VerdictTest(ProgramTest):
    def why(self, kind, pattern):
        done = subprocess.run([SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, rf"\A{kind}: {pattern}.*\n\Z")
        return done.stdout

    def ranks(self):
        return events.read_ranks(self.folder / "run")

    def wait_for_step(self, ranks, step):
        self.wait_for(lambda: len(self.ranks()) == ranks and all(rank.step >= step for rank in self.ranks()))

    def start(self, ranks, *command):
        run = self.start_ranks(ranks, *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        return run

    def end(self, run):
        output, _ = run.communicate(timeout=60)
        return output


class Run(VerdictTest):
    """Of runs that come to some end."""

    def check_signal(self, number, kind, during, behind):
        run = self.start(3, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(3, 100)
        os.kill(self.ranks()[1].process, number)
        self.wait_for(lambda: self.ranks()[1].process_state() in ("", "T"))
        self.assertRegex(self.why(kind, during), f" in step {self.ranks()[1].step}\\b")
        self.end(run)
        self.why(kind, behind)

    def test_killed(self):
        self.check_signal(signal.SIGKILL, "killed", r"rank 1 on \S+ was killed, or crashed, in step \d+", r"rank 1 on \S+ was killed, or crashed, in step \d+")

    def test_stopped(self):
        self.check_signal(signal.SIGSTOP, "stopped", r"rank 1 on \S+ is stopped in step \d+", r"rank 1 on \S+ was stopped in step \d+")

    def test_running_and_finished(self):
        run = self.start(2, *self.command("mlp", *self.iris(*ENDLESS), "--steps", 3000))
        self.wait_for_step(2, 50)
        self.why("running|finished", r"ranks 0 and 1 ")
        self.end(run)
        self.why("finished", "ranks 0 and 1 ended with exit status 0 after step 3000")
        self.assertRegex(self.ranks()[0].buckets[0], "fc1.weight")

    def test_finished_with_a_server(self):
        """Which makes no steps."""
        self.end(self.start(2, *self.command("mlp", *self.iris("output.dir=run", "distributed.strategy=async-server"), "--steps", 20)))
        self.why("finished", "ranks 0 and 1 ended with exit status 0 after step 20")

    def test_alone(self):
        self.run_one("mlp", *self.iris("output.dir=run"), "--steps", 20)
        self.why("finished", "rank 0 ended with exit status 0 after step 20")

    def test_asked_to_end(self):
        run = self.start(2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 50)
        os.kill(self.ranks()[1].process, signal.SIGTERM)
        self.end(run)
        self.why("signal", r"rank 1 on \S+ was asked to end by SIGTERM, and all ranks ended after step \d+")
        for rank in self.ranks():
            said = next(event for event in rank.events if event.kind == Kind.END)
            leaves = next(event for event in rank.events if event.text == "the end of its work")
            self.assertLess(said.sequence, leaves.sequence, "mpirun may kill a rank that leaves")

    def test_left_by_exit(self):
        run = self.start(2, BUILD / "tests/programs/exiting_mlp", *self.iris(*ENDLESS))
        self.wait_for_step(2, 50)
        os.kill(self.ranks()[1].process, signal.SIGUSR1)
        self.end(run)
        self.why("exit", r"rank 1 on \S+ was left by exit\(3\) in step \d+")

    def test_broken_data(self):
        support.draw_images(self.folder / "images")
        settings = ["data.path=images", "data.image_size=32", "training.batch_size=6", "training.schedule.warmup_epochs=1", *ENDLESS]
        run = self.start(2, *self.command("resnet", SOURCE / "models/resnet18.yaml", *self.settings(*settings)))
        self.wait_for_step(2, 4)
        image = sorted((self.folder / "images/train").rglob("*.jpg"))[3]
        image.write_text("no image")
        self.end(run)
        said = self.why("exception", r"rank [01] on \S+ ended in step \d+ with the error: ")
        self.assertIn(image.name, said)

    def test_broken_data_that_rank_0_reads_for_all(self):
        """In the validation of the first epoch, which rank 1 is to see none of."""
        support.draw_images(self.folder / "images", train=4)
        image = sorted((self.folder / "images/val").rglob("*.jpg"))[-1]
        image.write_text("no image")
        settings = ["data.path=images", "data.image_size=32", "training.batch_size=6", "training.schedule.warmup_epochs=1",
                    "distributed.strategy=scatter-gather", *ENDLESS]
        self.end(self.start(2, *self.command("resnet", SOURCE / "models/resnet18.yaml", *self.settings(*settings))))
        self.assertIn(image.name, self.why("exception", r"rank 0 on \S+ ended in step 2 with the error: "))

    def test_samples_that_rank_0_does_not_send(self):
        run = self.start(2, *self.command("mlp", *self.iris("distributed.strategy=scatter-gather", *ENDLESS)))
        self.wait_for_step(2, 100)
        os.kill(self.ranks()[0].process, signal.SIGSTOP)
        self.wait_for(lambda: self.ranks()[0].process_state() == "T")
        self.why("stopped", r"rank 0 on \S+ is stopped in step \d+")
        self.end(run)
        self.why("stopped", r"rank 0 on \S+ was stopped in step \d+")

    def test_a_mistake_of_all(self):
        self.run_one("mlp", *self.iris("output.dir=run", "training.epoch=3"), status=2)
        self.why("exception", r"rank 0 on \S+ ended with the error: .*did you mean 'epochs'")

    def test_full_disk(self):
        self.run_one("mlp", *self.iris("output.dir=run", "model.hidden=[300, 300]"), status=2, limit="-f 80")
        self.why("disk full", r"rank 0 on \S+ ended in step 15 with the error: cannot write 'run/checkpoint.unfinished/")

    def test_full_disk_on_two_ranks(self):
        large = self.iris("output.dir=run", "model.hidden=[300, 300]")
        self.mpirun(2, support.with_short_files(80, self.command("mlp", *large)), status=2)
        self.why("disk full", r"rank 0 on \S+ ended in step 15 with the error: cannot write 'run/checkpoint.unfinished/")

    def test_different_files(self):
        one, other = (self.command("mlp", *self.iris("output.dir=run", f"training.seed={seed}")) for seed in (1, 2))
        self.end(self.start(2, *one, ":", "-n", 1, *other))
        self.why("mismatch", r"rank 0 on \S+ ended with the error: the ranks differ in 'training.seed': rank 2 has '2'")

    def test_a_rank_that_does_not_start(self):
        run = self.start(1, *self.command("mlp", *self.iris(*ENDLESS)), ":", "-n", 1, "sleep", 60)
        self.wait_for(lambda: self.ranks() and self.ranks()[0].activity()[0] == Kind.WAIT)
        self.why("start-up", r"rank 1 did not start, .*; rank 0 on \S+ has been in start-up, in 'MPI_Init")
        self.assertIsNone(run.poll())

    def test_a_start_that_is_refused(self):
        """It does not hide the run that holds the folder, not even when that has ended."""
        run = self.start(1, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(1, 100)
        for mistake, says in (("training.seed=2", "^another run, process"), ("training.epoch=3", "did you mean 'epochs'")):
            refused = self.run_ranks(2, "mlp", *self.iris("output.dir=run", mistake), status=2)
            self.assertRegex(support.without_mpirun(refused.text)[0], says)
            self.why("running", "rank 0 ")
        os.kill(self.ranks()[0].process, signal.SIGTERM)
        self.end(run)
        self.why("signal", r"rank 0 on \S+ was asked to end by SIGTERM")

    def test_an_older_run_in_the_folder(self):
        self.run_ranks(3, "mlp", *self.iris("output.dir=run"), "--steps", 5)
        self.run_ranks(2, "mlp", *self.iris("output.dir=run"), "--steps", 7)
        self.why("finished", "ranks 0 and 1 ended with exit status 0 after step 7")

    def test_a_server_that_waits_is_not_the_slowest(self):
        self.start(3, *self.command("mlp", *self.iris(*ENDLESS, "distributed.strategy=async-server")))
        self.wait_for(lambda: self.ranks() and self.ranks()[0].activity()[:2] == (Kind.WAIT, "the end of the epoch"))

    def test_the_kinds_are_those_of_the_programs(self):
        kinds = re.findall(r"^  (\w+) = (\d+)", (SOURCE / "core/events.h").read_text(), re.MULTILINE)
        self.assertEqual([(name, int(number)) for name, number in kinds], [(kind.name.lower(), kind) for kind in Kind if kind])

    def test_a_folder_that_was_removed(self):
        """The ranks still hold what they kept there, also where the next checkpoint makes the folder anew."""
        run = self.start(2, *self.command("mlp", *self.iris(*ENDLESS)))
        self.wait_for_step(2, 100)
        rank = self.ranks()[1].process
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        self.assertRegex(self.why("running", "rank"), "; what it kept in '.*/run' was removed$")
        os.kill(rank, signal.SIGTERM)
        self.end(run)
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        done = subprocess.run([SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Awhy: there is no folder '.*/run'; name the folder output.dir of a run\n\Z")

    def test_folders_that_may_not_be_read(self):
        """By another user than root, to whom nothing is forbidden."""
        nobody = 65534 if os.geteuid() == 0 else None
        why = SOURCE / "tools/why"
        if nobody and subprocess.run([why, "--help"], user=nobody, capture_output=True).returncode != 0:
            self.skipTest(f"user {nobody} may not start {why}")
        self.folder.chmod(0o755)
        (self.folder / "run/events").mkdir(parents=True)
        for part, mode in (("run/events", 0), ("run", 0o333), ("run", 0)):
            (self.folder / part).chmod(mode)
            done = subprocess.run([why, self.folder / "run"], user=nobody, capture_output=True, text=True, timeout=60)
            (self.folder / part).chmod(0o755)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf"\Awhy: '.*/{part}' may not be read; ask as the user who has started the run\n\Z")

    def test_no_run(self):
        (self.folder / "run/events").mkdir(parents=True)
        strange = "'.*/rank-0000' holds no events that this version of Plexaura has written"

        def holding(number, kind):
            header = b"PLXEVENT" + struct.pack("<IIii", 1, events.SLOTS, 0, 2)
            return (header.ljust(events.SLOTS_AT, b"\0") + events.SLOT.pack(1, 1, number, kind, 1, b"")).ljust(events.FILE_BYTES, b"\0")

        unknown = "'.*/rank-0000' is damaged: it has an event of an unknown kind; remove it to be told of the others"
        for content, says in ((None, "there are no events in '.*/run': they were removed, or no run has kept any; name the folder output.dir of a run"),
                              (b"x" * 65536, strange),
                              (b"PLXEVENT" + struct.pack("<II", 1, 2**32 - 1) + b"x" * 65520, strange),
                              (holding(0, 255), unknown), (holding(-1, 7), unknown), (holding(1 << 40, 7), unknown),
                              (b"PLXEVENT" + bytes(300), "'.*/rank-0000' is cut off: it has fewer than 65536 bytes")):
            if content:
                (self.folder / "run/events/rank-0000").write_bytes(content)
            done = subprocess.run([SOURCE / "tools/why", self.folder / "run"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf"\Awhy: {says}\n\Z")


class Told(VerdictTest):
    """Of events that are hard to bring about, and were written by hand. All ranks are this process, which lives."""

    def rank(self, number, *told, step=12, host="h0", started=100.0, beat=None, place=None, oom_kills=2**62, survived=None, count=1000, ranks=3):
        """told: (seconds ago, kind, number, text)"""
        now, clock = time.time_ns(), time.monotonic_ns()
        stat = pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
        begin = int(started * 1e9)
        text = lambda value, size: value.encode().ljust(size, b"\0")
        data = events.HEADER.pack(b"PLXEVENT", 1, 119, number, ranks, os.getpid(), int(stat[19]), now - begin, clock - begin, oom_kills,
                                  int(started if beat is None else started - beat), step, 0, count, text(host, 64),
                                  text(events.own_place() if place is None else place, 128), text("", 64),
                                  0 if survived is None else clock - int(survived * 1e9), 0)
        data = data.ljust(events.HEADER_BYTES, b"\0") + text("fc1.weight, fc1.bias", 128)
        data = data.ljust(events.SLOTS_AT, b"\0")
        for i, (ago, kind, value, words) in enumerate(told):
            data += events.SLOT.pack(i + 1, clock - int(ago * 1e9), value, kind, os.getpid(), text(words, 480))
        path = self.write(f"run/events/rank-{number:04}", "")
        path.write_bytes(data.ljust(65536, b"\0"))

    def judged(self):
        return judge(self.ranks())

    def test_a_slow_loader(self):
        waits = (40, Kind.WAIT, 0, "bucket 0 of step 12")
        self.rank(0, waits)
        self.rank(1, (43, Kind.STEP, 12, ""), (43, Kind.DATA, 0, "samples"))
        self.rank(2, waits)
        self.assertEqual(self.judged()[:3], ("slow loader", 1, 12))
        self.why("slow loader", "rank 1 on h0 waits for samples for 43 s, in step 12")

    def test_a_loader_that_is_slow_in_each_step(self):
        for number in range(3):
            told = [(20 - i * 0.5 - (0 if kind == Kind.DATA else 0.4), kind, 0, "") for i in range(40) for kind in (Kind.DATA, Kind.BACK)]
            self.rank(number, *told)
        self.why("slow loader", "rank 0 on h0 waits for samples for 80% of the time, in step 12")

    def test_slow_validation_is_no_fault(self):
        waits = (500, Kind.WAIT, 0, "validation")
        self.rank(0, waits, started=1000)
        self.rank(1, (600, Kind.PHASE, 0, "validation"), (0.2, Kind.BACK, Kind.PHASE, "validation"), started=1000)
        self.rank(2, waits, started=1000)
        self.assertEqual(self.judged().kind, "running")

    def test_ranks_of_which_no_event_is_left(self):
        for number in range(3):
            self.rank(number)
        self.assertEqual(self.judged().kind, "running")

    def test_an_older_run_with_more_ranks(self):
        for number in range(3):
            self.rank(number, (0.1, Kind.STEP, 12, ""))
        self.rank(3, (400, Kind.ERROR, 1, "an old error"), started=500)
        self.assertEqual(self.judged().kind, "running")

    def test_ranks_whose_files_are_elsewhere(self):
        self.rank(0, (0.1, Kind.STEP, 12, ""))
        self.why("running", "rank 0 at step 12")

    def test_the_tensors_of_a_bucket(self):
        for number in range(3):
            self.rank(number, (30, Kind.WAIT, 0, "bucket 0 of step 12"))
        self.why("running", "rank 0 on h0 has been in step 12, in 'bucket 0 of step 12' \\(fc1.weight, fc1.bias\\) with the other ranks for 30 s")

    def test_saving_takes_long(self):
        for number, kind in enumerate((Kind.PHASE, Kind.WAIT, Kind.WAIT)):
            self.rank(number, (30, kind, 0, "saving a checkpoint"))
        self.why("running", "rank 0 on h0 has been in step 12, at 'saving a checkpoint' for 30 s")

    def test_a_death_that_the_others_outlive(self):
        gone = dict(place="another boot", started=1000, beat=500)
        self.rank(0, (0.1, Kind.STEP, 40, ""), survived=400)
        self.rank(1, (500, Kind.WAIT, 0, "bucket 0 of step 12"), **gone)
        self.rank(2, (0.1, Kind.STEP, 40, ""), survived=400)
        self.why("running", "ranks 0 and 2 at step 12; rank 1 died before, and the others went on")
        self.rank(2, (300, Kind.STEP, 40, ""), survived=400, **gone | {"beat": 300})  # a second one, later
        self.assertEqual(self.judged()[:2], ("killed", 2))

    def test_ranks_that_are_cut_off(self):
        """Rank 1 dies, and then rank 2, which had gone on. That it did says nothing of whether anybody goes on without ranks 0 and 3."""
        here = dict(started=1000, ranks=4)
        gone = dict(here, place="another boot")
        cut_off = [(60, Kind.ERROR, 1, "ranks 0 and 3 were cut off from the others, and from mpirun, which decides who goes on"), (60, Kind.END, 1, "")]
        self.rank(1, (500, Kind.WAIT, 0, "bucket 0 of step 12"), **gone, beat=500)
        for number in (0, 3):
            self.rank(number, *cut_off, **gone, beat=60, survived=300)
        self.rank(2, (310, Kind.STEP, 12, ""), **gone, beat=310, survived=490)
        self.why("exception", "rank 0 on h0 ended in step 12 with the error: ranks 0 and 3 were cut off .*; ranks 1 and 2 died before, and the others went on")
        self.rank(2, (0.1, Kind.STEP, 40, ""), **here, survived=250)
        self.why("running", "rank 2 at step 12; rank 1 died before, and the others went on; ranks 0 and 3 were cut off, and the others went on")
        self.rank(2, (200, Kind.STEP, 12, ""), **gone, beat=200, survived=250)
        self.why("killed", "rank 2 on h0 was killed, or crashed, in step 12, computing; rank 1 died before, .*; ranks 0 and 3 were cut off, and the others went on")

    def test_spares(self):
        waits = ((900, Kind.SPARE, 1, ""), (900, Kind.WAIT, 0, "the death of another rank"))
        for number in range(2):
            self.rank(number, (30, Kind.WAIT, 0, "bucket 0 of step 12"), started=1000)
        self.rank(2, *waits, step=0, started=1000)
        self.why("running", r"rank 0 on h0 has been in step 12, in 'bucket 0 of step 12' .* for 30 s; rank 2 is a spare")
        self.rank(2, *waits, step=0, started=1000, beat=500, place="another boot")
        self.why("killed", "rank 2 on h0 was killed, or crashed, as a spare")
        end = (1, Kind.END, 143, "")
        for number in range(2):
            self.rank(number, end)
        self.rank(2, *waits, (2, Kind.SIGNAL, signal.SIGTERM, ""), end, step=0, started=1000)
        self.assertEqual(self.judged()[:3], ("signal", 2, 12))
        self.why("signal", "rank 2 on h0 was asked to end by SIGTERM, and all ranks ended after step 12")
        self.rank(0, (500, Kind.WAIT, 0, "bucket 0 of step 12"), started=1000, beat=500, place="another boot")
        self.rank(1, (0.1, Kind.STEP, 12, ""), started=1000, survived=400)
        self.rank(2, *waits, (400, Kind.SPARE, 0, ""), (0.1, Kind.STEP, 12, ""), started=1000)
        self.why("running", "ranks 1 and 2 at step 12; rank 0 died before, and the others went on")

    def test_ranks_that_ended_as_others_did_not_start(self):
        """mpirun, or tools/run, has killed those that waited."""
        gone = dict(place="another boot", started=1000, beat=500, step=0)
        waits = (900, Kind.WAIT, 0, "MPI_Init")
        self.rank(0, waits, count=1, **gone)
        self.rank(2, waits, count=1, **gone)
        self.why("start-up", "rank 1 did not start, .*; rank 0 on h0 was killed, or crashed, in start-up, in 'MPI_Init' with the other ranks")
        self.rank(2, waits, (800, Kind.READY, 3, ""), count=2, **gone)  # all had started, and rank 1 keeps its events elsewhere
        self.assertEqual(self.judged()[:2], ("killed", 0))
        self.rank(2, waits, count=1, **gone)
        self.rank(1, waits, count=1, **gone)
        self.assertEqual(self.judged()[:2], ("killed", 0))

    def test_killed_for_want_of_memory(self):
        self.rank(0, (3, Kind.LOST, 1, "rank 1 on h0 has died while rank 0 waited at 'bucket 0 of step 12'"))
        self.rank(1, (4, Kind.STEP, 12, ""), oom_kills=-1)
        self.assertEqual(self.judged()[:3], ("out of memory", 1, 12))
        self.rank(1, (4, Kind.STEP, 12, ""), oom_kills=-1, place="another machine")  # of whose memory nothing is known here
        self.assertEqual(self.judged()[:3], ("killed", 1, 12))

    def test_out_of_memory(self):
        for said in ("out of memory: this machine has less than the run asks for", "a tensor float32[6000,6000] needs 144000000 bytes, and there is not so much memory",
                     "a tensor float32[6000,6000] needs 144000000 bytes, and this machine, or its container, has 9 left", "the CPU was asked for 99.0 MiB of memory and has 9.0 MiB",
                     "the GPU was asked for 99 bytes of memory and has 9 of its 50 bytes left",
                     "the order of 99 samples takes 8 bytes for each of them, and there is no memory for it"):
            self.rank(0, (3, Kind.ERROR, 1, said))
            self.assertEqual(self.judged()[:3], ("out of memory", 0, 12), said)

    def test_a_link_that_is_down(self):
        did_not_come = "on {} did not come to 'bucket 0 of step 12' within 60 s: stopped, stuck, still at work elsewhere, or the link to {} is down"
        self.rank(0, (3, Kind.LOST, 2, "rank 2 " + did_not_come.format("h1", "h1")))
        self.rank(1, (2.9, Kind.ECHO, 1, "rank 2 " + did_not_come.format("h1", "h1")))
        self.rank(2, (2.8, Kind.LOST, 0, "ranks 0 and 1 " + did_not_come.format("h0", "h0")), host="h1")
        self.assertEqual(self.judged()[:3], ("dropped link", 2, 12))
        os.remove(self.folder / "run/events/rank-0002")  # the other host has a disk of its own
        self.assertEqual(self.judged()[:3], ("dropped link", 2, 12))

    def test_given_up_ranks(self):
        for told, beat, kind in (([(70, Kind.DATA, 0, "samples")], 0, "slow loader"), ([(70, Kind.PHASE, 0, "saving a checkpoint")], 0, "stuck"),
                                 ([(70, Kind.STEP, 12, "")], 65, "stopped"),
                                 ([(70, Kind.STEP, 12, ""), (2.5, Kind.PAUSED, 66, ""), (2, Kind.STEP, 13, "")], 0, "stopped")):
            self.rank(0, (3, Kind.LOST, 1, "rank 1 did not come to 'bucket 0 of step 12' within 60 s: stopped, stuck, or still at work elsewhere"))
            self.rank(1, *told)
            if beat:
                self.rank(1, *told, beat=beat)
            self.assertEqual(self.judged()[:3], (kind, 1, 12))

    def test_ranks_that_cannot_be_seen_live_by_their_beat(self):
        elsewhere = dict(place="another boot", started=1000)
        for number in range(3):
            self.rank(number, (0.1, Kind.STEP, 12, ""), **elsewhere)
        self.assertEqual(self.judged().kind, "running")
        self.rank(1, (500, Kind.STEP, 12, ""), **elsewhere, beat=500)
        self.assertEqual(self.judged()[:3], ("killed", 1, 12))


if __name__ == "__main__":
    support.main()
