#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

struct HostPoint {
  std::size_t instruction;  // runs before this instruction; instructions.size() for after the last
  // Called by run() after everything before the point is enqueued. If it returns false, run() skips the rest.
  std::function<bool()> action;
  // If not empty, enqueues copies and events at this point, before the action. The point then does not divide a recording:
  // the recording captures these, and the action may be called later, before anything after the recording is enqueued.
  // The action must then return true.
  std::function<void()> enqueue = {};
};

// A range of instructions that no host point divides. Points with `enqueue` lie within a segment; every other
// point ends one.
struct Segment {
  std::size_t begin;
  std::size_t end;
  std::vector<HostPoint> inner = {};  // points in the segment, all with `enqueue`
  std::function<bool()> then = {};  // the action of the host point after the segment; empty if there is none
};

// Divides a program into segments. `points` may be in any order; those at the same instruction keep their order.
std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::size_t instructions);

}  // namespace plexaura
