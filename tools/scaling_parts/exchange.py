"""Computes how long ranks take to exchange bytes: closed forms of distributed/sums and
distributed/summing/root_sum.cpp.

A message has a latency and costs some time at both ends. A link carries a number of bytes a second in each
direction. For things that happen at the same time, only the slowest counts."""

import functools
import math
from dataclasses import replace

MIB = 1 << 20
SMALL = 8192  # bytes below which the ranks of a host read each other's whole arrays: WindowSum::small_bytes
MESSAGE = 60 << 10  # bytes, as in sum_algorithm.h: message_bytes
# The bytes of a message and the number of messages under way, as in pace_choice.cpp.
PACES = ((16 << 10, 2), (MESSAGE, 9), (16 << 10, 5))
RING_TOGETHER = 16  # as in ring_sum.cpp
ROOT_PIECE = MIB  # as in root_sum.cpp
MPI_DOUBLING = 10_000  # Open MPI exchanges whole arrays below this many bytes, and uses a ring above


class Group:
    """A number of ranks that fill one host after another."""

    def __init__(self, ranks, links):
        self.ranks, self.links = ranks, links
        self.on_host = min(ranks, links.ranks_per_host)
        self.hosts = math.ceil(ranks / links.ranks_per_host)

    def reaching(self, exchange):
        """Returns the group with the share of the bandwidth that this exchange reaches."""
        between = self.links.between
        bandwidth = between.bandwidth * self.links.reached.get(exchange, 1)
        return Group(self.ranks, replace(self.links, between=replace(between, bandwidth=bandwidth)))

    @property
    def slowest(self):
        return self.links.between if self.hosts > 1 else self.links.inside

    def meet(self):
        """Returns the seconds of the meeting that begins every call: all ranks report to rank 0, which
        answers. Ranks of one host use shared memory."""
        if self.ranks == 1:
            return 0.0
        if self.hosts == 1:
            return 2 * self.links.inside.latency
        return 2 * self.links.between.latency + 2 * (self.ranks - 1) * self.links.message

    def inside_seconds(self, size):
        """Returns the seconds in which each rank of a host adds one part of the arrays of all, and writes its
        sums to all."""
        if self.on_host == 1:
            return 0.0
        return 2 * (self.on_host - 1) / self.on_host * size / self.links.inside.bandwidth + 2 * self.links.inside.latency

    def levels(self):
        """Returns the levels of a binary tree of ranks: those between hosts, and those within a host."""
        return math.ceil(math.log2(self.hosts)), math.ceil(math.log2(self.on_host))


def window(group, size):
    if size <= SMALL:
        return group.meet() + group.on_host * size / group.links.inside.bandwidth
    return group.meet() + group.inside_seconds(size)


def hierarchical(group, size):
    """Every rank exchanges its stripe with the same stripe on the other hosts, while other ranks of the host
    add."""
    if group.hosts == 1:
        return window(group, size)
    return group.meet() + 2 * group.links.between.latency + min(paced(group, size, *pace) for pace in PACES)


def paced(group, size, message, under_way):
    """Returns the seconds for one way of sending parts. The link, the round trip or the work at both ends
    limits it."""
    links, others = group.links, group.hosts - 1
    wire = size * others / group.hosts * (1 + blocks_of_a_host(group.ranks, links.ranks_per_host))
    part = size / group.on_host / group.hosts
    work = group.inside_seconds(size) + 4 * others * max(math.ceil(part / message), 1) * links.message
    ahead = message * under_way
    answers = max(wire / group.on_host / ahead - 1, 0) * links.between.latency
    return max(wire / links.between.bandwidth, answers, work)


def ring(group, size):
    """Hosts are consecutive on the ring, so each link carries the data of one rank."""
    link, messages = group.slowest, 2 * group.links.message

    def step(chunk):
        return max(chunk, min(chunk, MESSAGE) + link.latency * link.bandwidth) / link.bandwidth + math.ceil(chunk / MESSAGE) * messages

    full, rest = divmod(size / group.ranks, MESSAGE * RING_TOGETHER)
    return group.meet() + 2 * (group.ranks - 1) * (full * step(MESSAGE * RING_TOGETHER) + (step(rest) if rest else 0))


def tree(group, size):
    """Pieces go up and down at the same time. Rank 0 has a child on every level."""
    return group.meet() + min(paced_tree(group, size, message) for message, _ in PACES)


def paced_tree(group, size, message):
    links, (between, inside) = group.links, group.levels()
    piece = min(size, message)
    way = between * (links.between.latency + piece / links.between.bandwidth) + inside * (links.inside.latency + piece / links.inside.bandwidth)
    messages = 2 * (between + inside) * links.message
    turn = max(between * piece / links.between.bandwidth, inside * piece / links.inside.bandwidth) + messages
    return 2 * (way + messages) + (math.ceil(size / message) - 1) * turn


def mpi(group, size):
    link, steps = group.slowest, math.ceil(math.log2(group.ranks))
    if size < MPI_DOUBLING:
        return group.meet() + steps * (link.latency + 2 * group.links.message + size / link.bandwidth)
    steps = 2 * (group.ranks - 1)
    return group.meet() + steps * (link.latency + 2 * group.links.message + size / group.ranks / link.bandwidth)


def gather_at_root(group, size, adders):
    """Rank 0 receives and adds one piece of each rank after another."""
    links = group.links
    pieces = math.ceil(size / ROOT_PIECE)
    near, far = group.on_host - 1, group.ranks - group.on_host
    arriving = near * size / links.inside.bandwidth + far * size / links.between.bandwidth
    waiting = pieces * (near * links.inside.latency + far * links.between.latency + (near + far) * links.message)
    return group.meet() + arriving + waiting + adders * size / links.inside.bandwidth


def broadcast(group, size):
    links, (between, inside) = group.links, group.levels()
    sending = max(between * size / links.between.bandwidth, inside * size / links.inside.bandwidth)
    # on each level all copies of a piece are sent
    filling = between * (between - 1) / 2 * min(size, MESSAGE) / links.between.bandwidth
    return group.meet() + sending + filling + between * links.between.latency + inside * links.inside.latency


ALGORITHMS = {"window": window, "hierarchical": hierarchical, "ring": ring, "tree": tree, "mpi": mpi}


def sum_seconds(algorithm, group, size):
    return ALGORITHMS[algorithm](group.reaching(algorithm), size) if group.ranks > 1 and size > 0 else 0.0


def root_seconds(group, size, adders, sends_sums):
    """Returns the seconds that reduce-broadcast, send-recv and scatter-gather take for a bucket."""
    reaching = group.reaching("root")
    return gather_at_root(reaching, size, adders) + (broadcast(reaching, size) if sends_sums else 0.0)


@functools.lru_cache(maxsize=None)
def blocks_of_a_host(ranks, per_host):
    """Returns the largest number of blocks that the ranks of a host form in the order of sums
    (distributed/sums/sum_order.h)."""
    return max(count_blocks(0, ranks, first, min(first + per_host, ranks)) for first in range(0, ranks, per_host))


def count_blocks(begin, end, first, last):
    """Counts the subtrees of the part of the tree from `begin` to `end` that together cover `first` to
    `last`."""
    if last <= begin or end <= first:
        return 0
    if first <= begin and end <= last:
        return 1
    half = 1 << ((end - begin - 1).bit_length() - 1)
    return count_blocks(begin, begin + half, first, last) + count_blocks(begin + half, end, first, last)
