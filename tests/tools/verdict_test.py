#!/usr/bin/env python3
"""Tests what tools/run_parts/verdict.py says about events that are hard to cause. The test writes them
itself.

usage: verdict_test.py ROOT
"""

import os
import signal

import written_ranks  # adds the folders of the modules below
from events import Kind
from verdict import judge
from written_ranks import WrittenRanks


class VerdictTest(WrittenRanks):
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
        self.rank(0, (0.1, Kind.STEP, 40, ""), started=1000, survived=400)
        self.rank(1, (500, Kind.WAIT, 0, "bucket 0 of step 12"), **gone)
        self.rank(2, (0.1, Kind.STEP, 40, ""), started=1000, survived=400)
        self.why("running", "ranks 0 and 2 at step 12; rank 1 died before, and the others continued")
        # a second rank that dies, later
        self.rank(2, (300, Kind.STEP, 40, ""), survived=400, **gone | {"beat": 300})
        self.assertEqual(self.judged()[:2], ("killed", 2))

    def test_a_rank_that_dies_as_it_goes_on(self):
        """The rank dies before it has counted another second."""
        gone = dict(place="another boot", started=1000)
        self.rank(0, **gone, beat=500, survived=470)
        self.rank(1, **gone, beat=600)
        self.why("killed", "rank 0 on h0 was killed, or crashed, in step 12, computing; rank 1 died before, and the others continued")

    def test_a_server_makes_no_steps(self):
        self.rank(0, (500, Kind.WAIT, 0, "the letters"), step=0, serves=1, place="another boot", started=1000, beat=500)
        for number in (1, 2):
            self.rank(number, (0.1, Kind.STEP, 12, ""))
        self.why("killed", "rank 0 on h0 was killed, or crashed, as a server, in 'the letters' with the other ranks$")

    def test_a_rank_that_is_stopped_at_the_start(self):
        """The others wait for it, and do not know for which rank. If mpirun lets it continue before it ends
        it, it reports the same as they do."""
        wait = "MPI_Init, where all ranks come together"
        said = f"process 7 has waited 60.0 s in {wait}: another rank has died, is stopped or is stuck; look for its output"
        for number in range(3):
            self.rank(number, (70, Kind.WAIT, 0, wait), (1, Kind.ERROR, 1, said), step=0, count=2)
        self.assertEqual(self.judged()[:2], ("start-up", 0))
        for more in ((), ((0.9, Kind.ERROR, 1, said),)):
            self.rank(1, (70, Kind.WAIT, 0, wait), *more, step=0, count=1 + len(more), beat=66)
            self.why("stopped", f"rank 1 on h0 was stopped in start-up, in '{wait}' with the other ranks, until the other ranks gave it up")

    def test_ranks_that_are_cut_off(self):
        """Rank 1 dies, and then rank 2, which had continued. This does not show that anybody continues
        without ranks 0 and 3."""
        here = dict(started=1000, ranks=4)
        gone = dict(here, place="another boot")
        cut_off = [(60, Kind.ERROR, 1, "ranks 0 and 3 were cut off from the others, and from mpirun, which decides which ranks continue"), (60, Kind.END, 1, "")]
        self.rank(1, (500, Kind.WAIT, 0, "bucket 0 of step 12"), **gone, beat=500)
        for number in (0, 3):
            self.rank(number, *cut_off, **gone, beat=60, survived=300)
        self.rank(2, (310, Kind.STEP, 12, ""), **gone, beat=310, survived=490)
        self.why("exception", "rank 0 on h0 ended in step 12 with the error: ranks 0 and 3 were cut off .*; ranks 1 and 2 died before, and the others continued")
        self.rank(2, (0.1, Kind.STEP, 40, ""), **here, survived=250)
        self.why("running", "rank 2 at step 12; rank 1 died before, and the others continued; ranks 0 and 3 were cut off, and the others continued")
        self.rank(2, (200, Kind.STEP, 12, ""), **gone, beat=200, survived=250)
        self.why("killed", "rank 2 on h0 was killed, or crashed, in step 12, computing; rank 1 died before, .*; ranks 0 and 3 were cut off, and the others continued")

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
        self.why("running", "ranks 1 and 2 at step 12; rank 0 died before, and the others continued")

    def test_a_run_that_made_no_step(self):
        """For example, a run that was resumed after its last epoch."""
        for number in range(3):
            self.rank(number, (1, Kind.END, 0, ""), step=0)
        self.why("finished", "ranks 0, 1 and 2 ended with exit status 0 without a step$")

    def test_a_spare_that_dies_late(self):
        """All training ranks end with status 0. It does not matter if the spare dies before or while they
        end."""
        spare = (900, Kind.SPARE, 1, "")
        for number in range(2):
            self.rank(number, (1, Kind.END, 0, ""), started=1000)
        for beat in (500, 130):
            self.rank(2, spare, step=0, started=1000, beat=beat, place="another boot")
            self.why("finished", "ranks 0 and 1 ended with exit status 0 after step 12; rank 2 died as a spare$")
        self.rank(2, spare, (1, Kind.END, 0, ""), step=0, started=1000)
        self.why("finished", "ranks 0, 1 and 2 ended with exit status 0 after step 12; rank 2 was a spare$")
        self.rank(1, (1, Kind.END, 1, ""), started=1000)
        self.rank(2, spare, step=0, started=1000, beat=500, place="another boot")
        self.why("killed", "rank 2 on h0 was killed, or crashed, as a spare")

    def test_ranks_that_ended_as_others_did_not_start(self):
        """mpirun or tools/run has killed the ranks that waited."""
        gone = dict(place="another boot", started=1000, beat=500, step=0)
        waits = (900, Kind.WAIT, 0, "MPI_Init")
        self.rank(0, waits, count=1, **gone)
        self.rank(2, waits, count=1, **gone)
        self.why("start-up", "rank 1 did not start, .*; rank 0 on h0 was killed, or crashed, in start-up, in 'MPI_Init' with the other ranks")
        # all ranks had started, and the events of rank 1 are on another machine
        self.rank(2, waits, (800, Kind.READY, 3, ""), count=2, **gone)
        self.assertEqual(self.judged()[:2], ("killed", 0))
        self.rank(2, waits, count=1, **gone)
        self.rank(1, waits, count=1, **gone)
        self.assertEqual(self.judged()[:2], ("killed", 0))

    def test_killed_for_want_of_memory(self):
        self.rank(0, (3, Kind.LOST, 1, "rank 1 on h0 has died while rank 0 waited at 'bucket 0 of step 12'"))
        self.rank(1, (4, Kind.STEP, 12, ""), oom_kills=-1)
        self.assertEqual(self.judged()[:3], ("out of memory", 1, 12))
        # nothing is known about its memory here
        self.rank(1, (4, Kind.STEP, 12, ""), oom_kills=-1, place="another machine")
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
        os.remove(self.path(2))  # the other host has its own disk
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
    written_ranks.main()
