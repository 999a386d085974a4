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

// A point of a program at which a VmRun stops, after everything before the point is enqueued.
struct HostPoint {
  std::size_t instruction;  // the run stops before this instruction; instructions.size() for after the last
  std::size_t id = 0;       // returned by VmRun::next()
  // If not empty, enqueues copies and events at this point. The point then does not divide a recording: the recording
  // captures these, and the run may stop later, before anything after the recording is enqueued. The run must then be
  // continued.
  std::function<void()> enqueue = {};
};

// A range of instructions that the host does not interrupt. Points with `enqueue` lie within a segment. All other points
// and instructions on the host end one.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::vector<HostPoint> inner = {};     // points in the segment, all with `enqueue`
  bool ends_on_host = false;             // the host carries out the last instruction
  std::optional<std::size_t> then = {};  // the id of the host point after the segment, if there is one
};

// Divides a program into segments. `points` may be in any order; those at the same instruction keep their order.
std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::span<const Instruction> instructions);

}  // namespace plexaura
