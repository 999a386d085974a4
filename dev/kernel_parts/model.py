"""A model of the least time that a kernel takes on a GPU, from the machine code of its main loop."""

import dataclasses
import re

CAPABILITY = 900      # the compute capability of machine_code.ARCHITECTURE, times 100
CLOCK = 1.755e9       # clocks a second of an H100 and an H200; assumed, as no kernel was timed on one
LANES = 4 * 32        # instructions of threads that a multiprocessor can issue in a clock
LATENCY = 650e-9      # seconds between a load and its value from the memory; assumed
MOST_THREADS = 2048   # of a multiprocessor


@dataclasses.dataclass
class Card:
    processors: int
    bytes_in_a_second: float


@dataclasses.dataclass
class Times:
    """Seconds, of which the largest is the least that the kernel takes."""

    memory: float   # to move the bytes
    issue: float    # to issue the instructions, whether their branches are taken or not
    waiting: float  # to load the bytes, if each thread waits for the loads of one round of the loop at a time

    def least(self):
        return max(self.memory, self.issue, self.waiting)

    def limit(self):
        return max(("memory", "issue", "waiting"), key=lambda name: getattr(self, name))


def read_cards(path):
    """Returns the described GPUs whose machine code is read, by name. Throws ValueError if the file has none."""
    number = r"([\d'.e]+)"
    rows = re.findall(r'\{"(\w+)",\s*"[^"]*",\s*' + r",\s*".join([number] * 10) + r",\s*(?:true|false)\}", path.read_text())
    cards = {}
    for name, *cells in rows:
        numbers = [float(cell.replace("'", "")) for cell in cells]
        if numbers[0] == CAPABILITY:
            cards[name] = Card(int(numbers[1]), numbers[9])
    if not cards:
        raise ValueError(f"{path}: no GPU of compute capability {CAPABILITY / 100} was found, so its table has another form "
                         "than this script reads")
    return cards


def times_of(kernel, loop, elements, card, count=1e9):
    """Returns the times for `count` elements, if a round of the loop computes `elements`."""
    rounds = count / elements
    loaded = sum(bits // 8 * loads for bits, loads in loop.loads.items())
    threads = kernel.occupancy * MOST_THREADS
    return Times(rounds * loop.moved() / card.bytes_in_a_second,
                 rounds * len(loop.instructions) / (card.processors * LANES * CLOCK),
                 rounds * LATENCY / (card.processors * threads) if loaded else 0)
