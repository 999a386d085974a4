#!/usr/bin/env python3
"""Tests, with a fake clock, when tools/run --rejoin restarts all ranks.

usage: rejoining_test.py ROOT
"""

import pathlib
import sys
import threading
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tools/run_parts"))

import rejoining  # noqa: E402
from rejoining import CALM, REST, SETTLED, Rejoining  # noqa: E402

LIMIT = 3


class RejoiningTest(unittest.TestCase):
    def setUp(self):
        self.now, self.left, self.step, self.places, self.asked, self.said = 1000.0, 0, 1, 100, 0, []
        clock = mock.patch.object(rejoining.time, "monotonic", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)

    def make(self, training, spares=0, started=None):
        started = training + spares if started is None else started
        rejoining = Rejoining(training + spares, LIMIT, self.count_places, self.said.append)
        rejoining.begin(started, max(started - training, 0))
        return rejoining

    def count_places(self):
        self.asked += 1
        return self.places

    def is_due(self, rejoining, after=0.0, left=None, can_save=True):
        """Asks after this many seconds. `left` is the number that surviving ranks report from then on; 0
        means none."""
        self.now += after
        self.left = self.left if left is None else left
        return rejoining.is_due([types.SimpleNamespace(left=left, step=self.step) for left in (0, self.left)], can_save)

    def begin(self, rejoining, ranks):
        """Begins the next start, and reports its first step."""
        rejoining.begin(ranks, 0)
        self.assertFalse(self.is_due(rejoining, left=0))

    def let_die(self, rejoining, ranks, after, starts):
        """In each start one rank dies this many seconds after the first step, and comes back."""
        for _ in range(starts):
            self.begin(rejoining, ranks)
            self.assertFalse(self.is_due(rejoining, after, left=ranks - 1))
            self.assertTrue(self.is_due(rejoining, SETTLED))

    def test_nobody_has_died(self):
        rejoining = self.make(4)
        self.assertFalse(any(self.is_due(rejoining, CALM) for _ in range(3)))
        self.assertEqual(self.asked, 0)

    def test_one_death(self):
        rejoining = self.make(4)
        self.assertFalse(self.is_due(rejoining, 10, left=3))
        self.assertFalse(self.is_due(rejoining, 0.9 * SETTLED))
        self.assertTrue(self.is_due(rejoining, 0.1 * SETTLED))

    def test_each_death_begins_the_wait_anew(self):
        rejoining = self.make(4)
        for left in (3, 2, 1):
            self.assertFalse(self.is_due(rejoining, 0.9 * SETTLED, left))
        self.assertFalse(self.is_due(rejoining, 0.9 * SETTLED))
        self.assertTrue(self.is_due(rejoining, 0.1 * SETTLED))

    def test_the_ranks_do_not_all_tell_the_same_yet(self):
        rejoining = self.make(4)
        self.now += 10
        self.assertFalse(rejoining.is_due([types.SimpleNamespace(left=left, step=1) for left in (3, 2, 0)], True))
        self.assertEqual(rejoining.left, 2)

    def test_a_spare_that_was_used_up_is_missed_when_all_is_calm(self):
        rejoining = self.make(4, spares=2)
        self.assertFalse(self.is_due(rejoining, 10, left=5))
        self.assertFalse(self.is_due(rejoining, CALM - 1, left=4))
        self.assertFalse(self.is_due(rejoining, CALM - 1))
        self.assertTrue(self.is_due(rejoining, 1))

    def test_more_deaths_than_spares(self):
        rejoining = self.make(4, spares=2)
        self.assertFalse(self.is_due(rejoining, 10, left=3))
        self.assertTrue(self.is_due(rejoining, SETTLED))

    def test_hosts_without_a_place_are_asked_again(self):
        rejoining, self.places = self.make(4), 3
        self.assertFalse(self.is_due(rejoining, 10, left=3))
        self.assertFalse(self.is_due(rejoining, SETTLED))
        self.assertEqual(self.asked, 1)
        self.places = 4
        self.assertFalse(self.is_due(rejoining, CALM - 1))
        self.assertTrue(self.is_due(rejoining, 1))
        self.assertEqual(self.asked, 2)

    def test_a_start_with_too_few(self):
        """No rank has died since."""
        rejoining = self.make(4, started=3)
        self.assertFalse(self.is_due(rejoining, CALM - 1))
        self.assertTrue(self.is_due(rejoining, 1))

    def test_a_host_that_takes_long_to_answer_holds_nobody_up(self):
        may_answer, rejoining = threading.Event(), self.make(4)
        rejoining.places = lambda: may_answer.wait() and 4
        self.assertFalse(self.is_due(rejoining, 10, left=3))
        self.assertFalse(self.is_due(rejoining, SETTLED))
        self.assertFalse(self.is_due(rejoining, 5))
        may_answer.set()
        rejoining.asking.join()
        self.assertTrue(self.is_due(rejoining))

    def test_a_new_start_waits_for_that_answer(self):
        may_answer, rejoining = threading.Event(), self.make(4)
        rejoining.places = lambda: may_answer.wait() and 4
        self.assertFalse(self.is_due(rejoining, 10, left=3))
        self.assertFalse(self.is_due(rejoining, SETTLED))
        asking = rejoining.asking
        threading.Timer(0.2, may_answer.set).start()
        rejoining.begin(4, 0)
        self.assertFalse(asking.is_alive())

    def test_nobody_comes_back_where_nothing_is_saved(self):
        """Ranks do not come back before the first checkpoint. The reason is printed once."""
        rejoining = self.make(4)
        for left in (0, 3, 3):
            self.assertFalse(self.is_due(rejoining, 2 * CALM, left, can_save=False))
        self.assertEqual(len(self.said), 1)
        self.assertRegex(self.said[0], "^ranks that die do not come back before .* output.dir; name a folder there$")
        self.assertTrue(self.is_due(rejoining))
        self.begin(rejoining, 4)
        self.assertEqual((len(self.said), self.asked), (1, 1))

    def test_nothing_is_said_of_that_before_the_first_step(self):
        self.step = 0
        self.assertFalse(self.is_due(self.make(4), 10, can_save=False))
        self.assertEqual(self.said, [])

    def test_a_rank_that_always_dies_again_is_left_alone_for_a_while(self):
        rejoining = self.make(4)
        self.let_die(rejoining, 4, CALM - 1, LIMIT)
        self.assertEqual(self.said, [])
        self.begin(rejoining, 4)
        self.assertFalse(self.is_due(rejoining, 5, left=3))
        self.assertEqual(self.said, ["in 4 starts in a row a rank has died within 60 s of the first step; the others continue without it, and no rank is started again for 10 minutes"])
        self.assertFalse(self.is_due(rejoining, REST / 2, left=2))
        self.assertFalse(self.is_due(rejoining, REST / 2 - 1))
        self.assertTrue(self.is_due(rejoining, 1))
        self.begin(rejoining, 4)
        self.assertFalse(self.is_due(rejoining, 5, left=3))
        self.assertFalse(self.is_due(rejoining, REST - 1))
        self.assertEqual(len(self.said), 2)

    def test_also_where_spares_take_over(self):
        rejoining = self.make(3, spares=1)
        for _ in range(LIMIT):
            rejoining.begin(4, 1)
            self.assertFalse(self.is_due(rejoining, left=0))
            self.assertFalse(self.is_due(rejoining, 5, left=3))
            self.assertTrue(self.is_due(rejoining, CALM))
        rejoining.begin(4, 1)
        self.assertFalse(self.is_due(rejoining, left=0))
        self.assertFalse(self.is_due(rejoining, 5, left=3))
        self.assertFalse(self.is_due(rejoining, CALM))

    def test_a_start_that_lasts_begins_the_count_anew(self):
        rejoining = self.make(4)
        for _ in range(3):
            self.let_die(rejoining, 4, 5, LIMIT)
            self.let_die(rejoining, 4, CALM, 1)
        self.assertEqual(self.said, [])

    def test_the_count_begins_with_the_first_step(self):
        """However long the start takes."""
        rejoining = self.make(4)
        for _ in range(LIMIT + 1):
            rejoining.begin(4, 0)
            self.step = 0
            self.assertFalse(self.is_due(rejoining, 10 * CALM, left=0))
            self.step = 1
            self.assertFalse(self.is_due(rejoining))
            self.assertFalse(self.is_due(rejoining, 5, left=3))
        self.assertEqual(len(self.said), 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
