#!/usr/bin/env python3
"""Tests which starts of mpirun follow each other under tools/run.

usage: starts_test.py ROOT
"""

import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tools/run_parts"))

from hosts import hosts_of_list, ranks_without  # noqa: E402
from starts import MISTAKE, Starts, resuming  # noqa: E402

KILLED, ENDED_BY_SIGNAL = 137, 143


class StartsTest(unittest.TestCase):
    def make(self, limit=2, rejoins=False, hosts="", program=("mlp", "iris.yaml")):
        return Starts(list(program), 4, 1, hosts_of_list(hosts) if hosts else [], limit, rejoins)

    def end(self, starts, status, saved=(0, 0), has_made_room=False, are_unseen=False, has_seen_ranks=True):
        """Ends a start. Returns true if another one follows, and prepares that."""
        ranks = [types.SimpleNamespace(saved=step) for step in saved]
        self.job = types.SimpleNamespace(ranks=ranks, started=starts.ranks, cause="cause", has_made_room=has_made_room, has_seen_ranks=has_seen_ranks,
                                         may_have_saved=lambda: are_unseen)
        starts.note_end(self.job)
        if starts.is_last(self.job, status):
            return False
        self.said = starts.prepare(self.job, [])
        return True

    def test_what_another_start_would_not_change(self):
        for status in (0, MISTAKE, 130, ENDED_BY_SIGNAL):
            self.assertFalse(self.end(self.make(), status))

    def test_failures_are_counted(self):
        starts = self.make(limit=2)
        self.assertTrue(self.end(starts, KILLED))
        self.assertEqual(self.said, "cause; starting again from the beginning with 4 ranks and 1 spare (restart 1 of 2)")
        self.assertTrue(self.end(starts, KILLED, saved=(0, 30)))
        self.assertEqual(self.said, "cause; starting again from the last checkpoint with 4 ranks and 1 spare (restart 2 of 2)")
        self.assertEqual(starts.program, ["mlp", "iris.yaml", "--resume"])
        self.assertFalse(self.end(starts, KILLED, saved=(0, 60)))

    def test_with_rejoining_those_in_a_row_that_have_saved_nothing(self):
        starts = self.make(limit=2, rejoins=True)
        for _ in range(5):
            self.assertTrue(self.end(starts, KILLED))
            self.assertTrue(self.end(starts, KILLED, saved=(30, 0)))
        self.assertTrue(self.end(starts, KILLED))
        self.assertFalse(self.end(starts, KILLED))

    def test_ranks_that_made_room_have_not_failed(self):
        starts = self.make(limit=1, rejoins=True)
        for _ in range(5):
            self.assertTrue(self.end(starts, ENDED_BY_SIGNAL, saved=(30, 30), has_made_room=True))
            self.assertEqual(self.said, "starting again from the last checkpoint with 4 ranks and 1 spare")
            self.assertTrue(self.end(starts, KILLED))

    def test_a_job_of_which_nothing_has_started(self):
        self.assertFalse(self.end(self.make(), 1, saved=()))
        self.assertTrue(self.end(self.make(hosts="a:5"), 1, saved=()))

    def test_ranks_that_were_found_when_all_was_over_are_not_waited_for(self):
        """In the next start, nothing may be seen of them either."""
        starts = self.make(hosts="a:5")
        for sees in (False, True):
            self.assertTrue(self.end(starts, KILLED, has_seen_ranks=sees))
            self.assertEqual(starts.are_seen, sees)

    def test_without_hosts_that_are_gone(self):
        starts = self.make(hosts="a:2,b:1,c:2")
        self.end(starts, KILLED)
        self.assertEqual(starts.refusal(self.job, starts.hosts), "no host answers any more")
        self.assertEqual(starts.prepare(self.job, starts.hosts[2:]), "cause; starting again from the beginning with 3 ranks without c (restart 1 of 2)")
        self.assertEqual((starts.ranks, starts.spares, [host.name for host in starts.hosts_left]), (3, 0, ["a", "b"]))

    def test_slots_that_were_free_take_ranks_of_hosts_that_are_gone(self):
        for text, ranks, gone, left in (("a:4,b:4", 4, "b", 4), ("a:4,b:4", 4, "a", 4), ("a:4,b:4", 6, "a", 4), ("a:4,b:4", 8, "b", 4), ("a:3,b:1", 4, "a", 1),
                                        ("a:4,b:4", 4, "", 4), ("a:4,b:4", 4, "ab", 0),
                                        # more ranks than slots
                                        ("a:2,b:2", 8, "b", 4), ("a:3,b:1", 8, "b", 6), ("a:2,b:1", 4, "b", 3)):
            hosts = hosts_of_list(text)
            self.assertEqual(ranks_without([host for host in hosts if host.name in gone], hosts, ranks), left, f"{ranks} on {text} without '{gone}'")

    def test_not_over_a_checkpoint_of_ranks_that_are_not_seen(self):
        starts = self.make(hosts="a:3,b:2")
        self.end(starts, KILLED, are_unseen=True)
        self.assertRegex(starts.refusal(self.job, []), "^it is not started again, because only 2 of 5 ranks are visible from here, ")
        self.end(starts, KILLED, saved=(30,), are_unseen=True)
        self.assertEqual(starts.refusal(self.job, []), "")

    def test_weights_are_for_the_beginning(self):
        self.assertEqual(resuming(["mlp", "--weights", "file", "--skip=fc.*", "--replace", "--steps", "5"]), ["mlp", "--steps", "5", "--resume"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
