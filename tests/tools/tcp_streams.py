#!/usr/bin/env python3
"""Times what plain TCP streams carry between hosts: the bound of what sums between them may take.

    mpirun --host h0:1,h1:1,h2:1 -n 3 python3 tests/tools/tcp_streams.py --bytes 25000000 10.99.0.1 10.99.0.2 10.99.0.3

One process on each host, whose addresses are named in the order of ranks. All send each other at once what a sum of BYTES needs at
least: each host 2 (n - 1) / n of them, in equal parts to all others. Prints the median of the slowest host, and its share of --rate.
"""

import argparse
import os
import socket
import statistics
import threading
import time

PORT = 17_113  # below those that a system gives by itself


def connect(rank, addresses):
    """A stream to each other host: the lower rank is called by the higher ones."""
    streams = {}
    with socket.create_server((addresses[rank], PORT), backlog=len(addresses)) as server:
        for other in range(rank):
            streams[other] = call(addresses[other])
            streams[other].sendall(bytes([rank]))
        while len(streams) < len(addresses) - 1:
            stream, _ = server.accept()
            streams[stream.recv(1)[0]] = stream
    for stream in streams.values():
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return streams


def call(address, patience=30):
    end = time.monotonic() + patience
    while True:
        try:
            return socket.create_connection((address, PORT))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def receive(stream, size):
    buffer = memoryview(bytearray(min(size, 1 << 20)))
    while size > 0:
        count = stream.recv_into(buffer[:min(size, len(buffer))])
        if count == 0:
            raise ConnectionError("the other end has gone")
        size -= count


def exchange(streams, size):
    """So many bytes to each of the others, and as many from each, all at once."""
    data = bytes(size)
    threads = [threading.Thread(target=work, args=(stream, argument))
               for stream in streams.values() for work, argument in ((socket.socket.sendall, data), (receive, size))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("addresses", nargs="+", help="of the hosts, in the order of ranks")
    parser.add_argument("--bytes", type=int, default=25_000_000, help="that would be summed (25,000,000)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rate", type=float, default=1e9, help="of the line, in bits a second (1e9)")
    options = parser.parse_args()
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    streams = connect(rank, options.addresses)
    hosts = len(options.addresses)
    seconds = []
    for _ in range(options.rounds):
        exchange(streams, 1)  # all begin together
        begin = time.monotonic()
        exchange(streams, 2 * options.bytes // hosts)
        exchange(streams, 1)  # and the slowest counts
        seconds.append(time.monotonic() - begin)
    if rank == 0:
        median = statistics.median(seconds)
        sent = 2 * (hosts - 1) * options.bytes / hosts
        print(f"{hosts} hosts, {options.bytes:,} bytes: {median * 1e3:.1f} ms, {sent / median / 1e6:.1f} MB/s from each host, "
              f"{8 * sent / median / options.rate:.1%} of the line")


if __name__ == "__main__":
    main()
