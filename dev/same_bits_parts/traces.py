"""What a run has left behind, as lines that two builds have in common: without times, and without places in C++ sources."""

import collections
import hashlib
import json
import re

SOURCE = re.compile(r"\S+\.(?:cpp|h|cu):\d+")
TIMES = re.compile(r"second|overlap|waited|straggler")  # keys of --log
# Kinds of events (core/base/events.h) that no time decides: ready, step, phase, wait, saved, error, echo, bucket, serves. A wait for
# samples is told only where they are late.
KINDS = {2: "ready", 3: "step", 5: "alone", 6: "together", 8: "saved", 9: "error", 10: "echo", 16: "bucket", 19: "serves"}
# Calls in which ranks tell times, numbers of processes or the version of the build: lengths of these texts do not count.
OTHER_LENGTHS = ("'how long the ranks have waited'", "'the comparison of the ranks'", "'where the ranks are'", "'the rendezvous of the node'",
                 "'the gradient arena'", "'the folder of checkpoints'")


def without_places(text):
    return [SOURCE.sub("SOURCE", line) for line in text.splitlines()]


def checkpoint_lines(output):
    """Of each file a line for each tensor, in the order in which they lie there, and then one for each entry of the metadata."""
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
    """Of --log: losses, metrics, rates and the bytes that were exchanged."""
    entries = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [json.dumps({key: value for key, value in entry.items() if not TIMES.search(key)}) for entry in entries]


def call_lines(folder):
    """Of all ranks, those of each thread in its order."""
    lines = []
    for path in sorted(folder.glob("rank-*")):
        threads = read_calls(path)
        main = threads.pop("0", [])
        for number, calls in enumerate([main, *sorted(threads.values(), key=texts)]):
            lines += [f"{path.name}, thread {number}: {text}" for text in texts(calls)]
    return lines


def message_lines(folder):
    """Of all ranks: how often each message was sent or received, whenever that was."""
    lines = []
    for path in sorted(folder.glob("rank-*")):
        calls = [call for thread in read_calls(path).values() for call in thread]
        counts = collections.Counter(text for call in calls for text in call.messages_that_count())
        lines += [f"{path.name}: {count} times {text}" for text, count in sorted(counts.items())]
    return lines


def read_calls(path):
    """Of a rank, by its threads; "0" is the one that runs main()."""
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
    """Something that a thread has told, and the messages behind it. They are sorted: some may arrive in any order."""

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
