#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/compile/program.h"
#include "core/compile/tuner.h"

namespace plexaura {

// A value that a program computes, and where it is written.
struct ProgramOutput {
  Node node;
  // Empty: VM::output reads it. Otherwise it is cast to what the gradient arena holds there, and written to it: as
  // the gradient of the parameter, or the change of the buffer, of this name, ...
  std::string gradient_of = {};
  // ... or into this slot of the tail (a scalar).
  std::optional<TailSlot> tail = {};
};

struct CompileOptions {
  // Where the parameters lie. Null, or of a store that is not placed yet: the program makes the placement.
  const Placement* placement = nullptr;
  // Of the arenas in the placement that the program makes where `placement` is null. Empty: all have the dtype of the
  // parameters.
  std::optional<ArenaTypes> types = {};
  // Off: updates of buffers are left out. A program for gradients computes their change instead, and changes
  // nothing by itself.
  bool apply_updates = true;
  // Off: no merging, folding, regions, memory reuse or work in place; the debugger's way.
  bool optimise = true;
  // Every value that the program computes can be read with VM::value; implies optimise = false.
  bool keep_all = false;
  // Measures kernels where several are offered. Null: they are chosen by estimates.
  Tuner* tuner = nullptr;
  // On: an op for which the backend has no kernel is an error. Off: the host computes such an op with the op's reference
  // kernel, and Program::ops_on_host() names it.
  bool strict = false;
};

// Compiles a graph with passes in a fixed order: verify, prune, merge, fold, bind kernels and layouts, plan memory. Throws
// UserError with node and backend for an op that neither the backend nor the host can compute, and UserError for outputs
// that have no place. The graph may be destroyed afterwards; the backend must outlive the program. Threads that compile
// for the same backend take turns.
PLEXAURA_API std::shared_ptr<const Program> compile(const Graph& graph,
                                                    std::span<const ProgramOutput> outputs, Backend& backend,
                                                    const CompileOptions& options = {});

}  // namespace plexaura
