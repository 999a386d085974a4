#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/compile/program.h"
#include "core/device/backend.h"

namespace plexaura {

// A point of a program at which a VmRun stops. All instructions before it are enqueued by then.
struct HostPoint {
  std::size_t
      // The run stops before the instruction with this index. If this is the number of instructions, the run stops at the
      // end of the program.
      instruction;
  std::size_t id = 0;  // number that VmRun::next() returns at this point
  // Enqueues copies and events at this point. If it is empty, a segment ends at the point, and no later
  // instruction is enqueued before the run continues. Otherwise the point is inside a segment, and a
  // recording of the segment contains the copies and events. A recording is replayed as a whole, before the
  // run stops at the points inside it.
  std::function<void()> enqueue = {};
};

// A range of instructions that a backend may record and replay as a whole. A segment ends at each host point without
// `enqueue`, and after each instruction that the host carries out.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;                   // index after the segment's last instruction
  std::vector<HostPoint> inner = {};     // host points inside the segment, in their order; all have `enqueue`
  bool ends_on_host = false;             // the host carries out the segment's last instruction
  std::optional<std::size_t> then = {};  // id of the host point that follows the segment; empty if none does
};

// Divides a program into segments. `points` may be in any order; those at the same instruction keep their order. Throws
// InternalError for a point beyond the end of the program.
std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::span<const Instruction> instructions);

}  // namespace plexaura
