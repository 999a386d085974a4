#!/usr/bin/env python3
"""When tools/run --rejoin starts all ranks again, by a clock that the tests turn.

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
from rejoining import CALM, SETTLED, Rejoining  # noqa: E402


class RejoiningTest(unittest.TestCase):
    def setUp(self):
        self.now, self.left, self.places, self.asked = 1000.0, 0, 100, 0
        clock = mock.patch.object(rejoining.time, "monotonic", lambda: self.now)
        clock.start()
        self.addCleanup(clock.stop)

    def make(self, training, spares=0, started=None):
        started = training + spares if started is None else started
        return Rejoining(training + spares, started, max(started - training, 0), self.count_places)

    def count_places(self):
        self.asked += 1
        return self.places

    def is_due(self, rejoining, after=0.0, left=None):
        """So many seconds later. `left`: what ranks that went on tell then, and still tell afterwards; 0: nothing."""
        self.now += after
        self.left = self.left if left is None else left
        return rejoining.is_due([types.SimpleNamespace(left=0), types.SimpleNamespace(left=self.left)])

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
        self.assertFalse(rejoining.is_due([types.SimpleNamespace(left=left) for left in (3, 2, 0)]))
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
        """Nobody has died since."""
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
