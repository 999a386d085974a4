"""When ranks that are missing are worth a new start of all, from a checkpoint that the others save for it."""

import threading
import time

SETTLED = 0.5  # seconds without another death: what has killed one rank often kills the others of its host
CALM = 60  # seconds until spares that are used up are filled again, which nobody misses yet, or hosts are asked again


class Rejoining:
    """`wanted`: all ranks, spares included, of which `started` were started. `places` tells how many could be started now,
    which takes seconds where a host does not answer: it is called in a thread."""

    def __init__(self, wanted, started, spares, places):
        self.wanted, self.spares, self.places = wanted, spares, places
        self.left, self.due_at = started, time.monotonic() + CALM
        self.asking, self.found = None, 0

    def is_due(self, ranks):
        """To be asked again and again, with what the ranks tell. Those that go on after a death tell how many are left."""
        left = min((rank.left for rank in ranks if rank.left), default=self.left)
        missing = self.wanted - left
        if left < self.left:
            self.left, self.due_at = left, time.monotonic() + (SETTLED if missing > self.spares else CALM)
        if not missing or time.monotonic() < self.due_at:
            return False
        if self.asking is None:
            self.asking, self.found = threading.Thread(target=self.ask, daemon=True), 0
            self.asking.start()
            self.asking.join(0.1)  # where no host has to answer it is known at once
        if self.asking.is_alive():
            return False
        self.asking = None
        self.due_at = time.monotonic() + CALM
        return self.found > left

    def ask(self):
        self.found = self.places()
