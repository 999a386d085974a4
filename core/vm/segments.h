#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/device/backend.h"

namespace plexaura {

struct HostPoint {
  std::size_t instruction;  // runs before this instruction; instructions.size() for after the last
  // Called by run(), after everything before it is enqueued; false: run() leaves out the rest.
  std::function<bool()> action;
  // Enqueues copies and events here, before the action. With it the point cuts no recording: this is captured there,
  // and the action, which returns true, may be called later, before what follows the recording is enqueued.
  std::function<void()> enqueue = {};
};

// Instructions between two points at which the host takes part.
struct Segment {
  std::size_t begin;
  std::size_t end;
  std::vector<HostPoint> inner = {};  // those that enqueue
  std::function<bool()> then = {};    // what the host does behind it; empty for nothing
};

// Points are sorted by instruction, those of one instruction stay in their order.
std::vector<Segment> cut_segments(std::vector<HostPoint> points, std::size_t instructions);

}  // namespace plexaura
