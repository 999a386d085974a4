#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/export.h"
#include "core/compile/program.h"
#include "core/compile/tuner.h"

namespace plexaura {

// A value that a program computes, and the place to which it is written.
struct ProgramOutput {
  Node node;
  // The name of a parameter or a buffer. The value is written to its place in the gradient arena, as the gradient of the
  // parameter or as the update of the buffer, and is cast to the dtype of that arena. If this, `tail` and `output` are
  // empty, VM::output reads the value.
  std::string gradient_of = {};
  // The slot at the end of the gradient arena to which the value, a scalar, is written.
  std::optional<TailSlot> tail = {};
  // Only in the body of a loop: the output of the instruction that runs the body, to which the value is
  // written.
  std::optional<std::size_t> output = {};
};

struct CompileOptions {
  // The placement of the parameters. If it is null, or belongs to a store that has no placement yet, this
  // program makes the placement.
  const Placement* placement = nullptr;
  // The dtypes of the arenas, if `placement` is null and this program makes the placement. Empty: all arenas
  // have the dtype of the parameters.
  std::optional<ArenaTypes> types = {};
  // False: the program stores no updates of buffers. A program for gradients writes them to the gradient arena instead:
  // see ProgramOutput::gradient_of.
  bool apply_updates = true;
  // False: nodes are not merged or folded, no kernel computes several nodes, and values share no memory.
  // Meant for debugging.
  bool optimise = true;
  // True: VM::value can read every value that the program computes. Implies optimise = false.
  bool keep_all = false;
  // Measures kernels if the backend offers several. Null: estimates choose the kernels.
  Tuner* tuner = nullptr;
  // The most bytes that the arena of intermediate values may have. If it needs more, values of the forward
  // pass are freed, and computed again in the backward pass, with the same bits: see recompute.h. Empty: no
  // limit. Cannot be combined with optimise = false or keep_all.
  std::optional<std::size_t> memory_limit = {};
  // True: an op for which the backend has no kernel is an error. False: the host computes such an op with the
  // op's reference kernel, and Program::ops_on_host() names it.
  bool strict = false;
  // For the body of a loop: true for each operand that is the same in each step. Empty: the graph is no body.
  std::vector<bool> same_operands = {};
  // For the body of a loop: the number of times that it runs, while its prologue runs once.
  std::int64_t loop_steps = 0;
  // Is called with the graph as a pass has left it, and the name of the pass: verify, prune, merge, fold, and repeat if it
  // changes anything. Program::graph is the graph after the last pass.
  std::function<void(std::string_view pass, const Graph& graph)> after_pass = {};
};

// Thrown by compile() if the arena of a program cannot be as small as CompileOptions::memory_limit.
class PLEXAURA_API MemoryLimitError : public UserError {
 public:
  MemoryLimitError(std::size_t least_bytes, std::size_t limit);
  std::size_t least_bytes() const { return least_bytes_; }  // the smallest arena that was found

 private:
  std::size_t least_bytes_;
};

// Compiles a graph in a fixed order of passes: verify, prune, merge, fold, repeat, bind kernels and layouts, plan memory, and,
// if the arena exceeds the limit, recompute. Throws MemoryLimitError if that does not suffice. Throws UserError, with
// node and backend, for an op that neither the backend nor the host can compute. Throws UserError for outputs without
// a valid place; see verify_outputs(). The graph may be destroyed afterwards. The backend must outlive the program.
// Only one thread at a time compiles for a backend; others wait.
PLEXAURA_API std::shared_ptr<const Program> compile(const Graph& graph,
                                                    std::span<const ProgramOutput> outputs, Backend& backend,
                                                    const CompileOptions& options = {});

}  // namespace plexaura
