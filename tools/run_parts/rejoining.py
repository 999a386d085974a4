"""When ranks that are missing are worth a new start of all, from a checkpoint that the others save for it."""

import time

SETTLED = 1  # seconds without another death: what has killed one rank often kills the others of its host
CALM = 60  # seconds until spares that are used up are filled again, which nobody misses yet, or hosts are asked again


class Rejoining:
    """`wanted`: all ranks, spares included, of which `started` were started. `places` tells how many could be started now."""

    def __init__(self, wanted, started, spares, places):
        self.wanted, self.spares, self.places = wanted, spares, places
        self.left, self.due_at = started, time.monotonic() + CALM

    def is_due(self, ranks):
        """To be asked again and again, with what the ranks tell. Those that go on after a death tell how many are left."""
        left = min((rank.left for rank in ranks if rank.left), default=self.left)
        missing = self.wanted - left
        if left < self.left:
            self.left, self.due_at = left, time.monotonic() + (SETTLED if missing > self.spares else CALM)
        if not missing or time.monotonic() < self.due_at:
            return False
        self.due_at = time.monotonic() + CALM
        return self.places() > left
