#!/usr/bin/env python3
"""What tools/run_parts/events.py reads of files that no rank has written so.

usage: events_test.py ROOT
"""

import struct

import written_ranks  # finds what follows
import events
from written_ranks import WrittenRanks


class EventsTest(WrittenRanks):
    def test_no_run(self):
        strange = "'.*/rank-0000' holds no events that this version of Plexaura has written"

        def holding(number, kind):
            header = b"PLXEVENT" + struct.pack("<IIii", 1, events.SLOTS, 0, 2)
            return (header.ljust(events.SLOTS_AT, b"\0") + events.SLOT.pack(1, 1, number, kind, 1, b"")).ljust(events.FILE_BYTES, b"\0")

        unknown = "'.*/rank-0000' is damaged: it has an event of an unknown kind; remove it to be told of the others"
        for content, says in ((None, "there are no events in '.*/run': they were removed, or no run has kept any; name the folder output.dir of a run"),
                              (b"x" * 65536, strange),
                              (b"PLXEVENT" + struct.pack("<II", 1, 2**32 - 1) + b"x" * 65520, strange),
                              (holding(0, 255), unknown), (holding(-1, 7), unknown), (holding(1 << 40, 7), unknown),
                              (b"PLXEVENT" + bytes(300), "'.*/rank-0000' is cut off: it has fewer than 65536 bytes")):
            if content:
                self.path(0).write_bytes(content)
            done = self.ask()
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf"\Awhy: {says}\n\Z")


if __name__ == "__main__":
    written_ranks.main()
