"""Turns the files of a run into lines that can be compared between builds: without times, and without
positions in C++ sources."""

import collections
import hashlib
import json
import re

SOURCE = re.compile(r"\S+\.(?:cpp|h|cu):\d+")
TIMES = re.compile(r"second|overlap|waited|straggler")  # keys of --log
# Kinds of events (core/base/events.h) that do not depend on time. A wait for samples does: it is reported
# only if they are late.
KINDS = {2: "ready", 3: "step", 5: "alone", 6: "together", 8: "saved", 9: "error", 10: "echo", 16: "bucket", 19: "serves"}
# Calls in which ranks exchange times, process ids or the version of the build. The lengths of these texts are
# not compared.
OTHER_LENGTHS = ("'how long the ranks have waited'", "'the comparison of the ranks'", "'where the ranks are'", "'the rendezvous of the node'",
                 "'the gradient arena'", "'the folder of checkpoints'")


def without_places(text):
    return [SOURCE.sub("SOURCE", line) for line in text.splitlines()]


def checkpoint_lines(output):
    """Returns for each file a line for each tensor, in the order of the file, and one for each entry of the
    metadata."""
    lines = []
    for path in sorted(output.glob("checkpoint-*/*.safetensors")):
        name = f"{path.parent.name}/{path.name}"
        data = path.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:begin])
        metadata = header.pop("__metadata__", {})
        for tensor, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            first, last = entry["data_offsets"]
            digest = hashlib.sha256(data[begin + first:begin + last]).hexdigest()
            lines.append(f"{name}: {tensor} {entry['dtype']}{entry['shape']} sha256 {digest}")
        lines += [f"{name}: {key} = {value}" for key, value in sorted(metadata.items()) if key != "kernel_times"]
    return lines


def log_lines(path):
    """Returns lines from --log: losses, metrics, rates and exchanged bytes."""
    entries = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [json.dumps({key: value for key, value in entry.items() if not TIMES.search(key)}) for entry in entries]


def call_lines(folder):
    """Returns the calls of all ranks, those of each thread in order."""
    lines = []
    for path in sorted(folder.glob("rank-*")):
        threads = read_calls(path)
        main = threads.pop("0", [])
        for number, calls in enumerate([main, *sorted(threads.values(), key=texts)]):
            lines += [f"{path.name}, thread {number}: {text}" for text in texts(calls)]
    return lines


def message_lines(folder):
    """Returns for each rank how often each message was sent or received, at any time."""
    lines = []
    for path in sorted(folder.glob("rank-*")):
        calls = [call for thread in read_calls(path).values() for call in thread]
        counts = collections.Counter(text for call in calls for text in call.messages_that_count())
        lines += [f"{path.name}: {count} times {text}" for text, count in sorted(counts.items())]
    return lines


def read_calls(path):
    """Returns the calls of a rank by thread; "0" is the one that runs main()."""
    threads = {}
    for line in path.read_text(errors="replace").splitlines():
        kind, thread, rest = line.split(" ", 2)
        calls = threads.setdefault(thread, [Call("its begin")])
        if kind == "message":
            calls[-1].messages.append(message(*rest.split()))
        elif int(rest.split(" ", 1)[0]) in KINDS:
            calls.append(Call(event(*rest.split(" ", 2))))
    return threads


class Call:
    """An event of a thread, and the messages after it. They are sorted, as some may arrive in any order."""

    def __init__(self, name):
        self.name, self.messages = name, []

    def texts(self):
        return [self.name, *(f"{self.name}: {text}" for text in sorted(self.messages_that_count()))]

    def messages_that_count(self):
        return [text.rpartition(":")[0] for text in self.messages] if self.name.endswith(OTHER_LENGTHS) else self.messages


def texts(calls):
    return [text for call in calls for text in call.texts()]


def event(kind, number, text):
    return " ".join([KINDS[int(kind)], *([number] if number != "0" else []), *([f"'{text}'"] if text else [])])


def message(communicator, call, peer, tag, size):
    return f"{call} in communicator {communicator}, peer {peer}, tag {tag}: {size} bytes"
