#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/export.h"
#include "core/compile/program.h"
#include "core/compile/step_block.h"
#include "core/exchange/collective.h"
#include "core/params/parameter_store.h"
#include "core/vm/feed.h"
#include "core/vm/segments.h"
#include "core/vm/workspace.h"

namespace plexaura {

struct VmOptions {
  ParameterStore* store = nullptr;  // needed where the program reads parameters, buffers or arenas
  // Memory for intermediate values and feeds. Programs that share it overwrite each other's. Null: the VM allocates its own.
  std::shared_ptr<Workspace> workspace = {};
  Collective* collective = nullptr;         // needed for collective ops without a kernel of the backend
  std::vector<HostPoint> host_points = {};  // in any order; cut the program into segments
  bool watch = false;                       // after each instruction look for NaN and Inf
  class Profile* profile = nullptr;         // an event per instruction; waits after each
};

// Runs a program. One VM per thread; the program is shared: UserError for a call while another thread is in one. run()
// enqueues and, on a device of its own, returns before the work is done. It allocates nothing once it has run from each
// slot of its workspace's FeedMemory. It shares the store, and the backend where a std::shared_ptr owns it; UserError
// where another backend is gone.
class PLEXAURA_API VM {
 public:
  VM(std::shared_ptr<const Program> program, Backend& backend, VmOptions options = {});
  ~VM();
  VM(const VM&) = delete;
  VM& operator=(const VM&) = delete;

  // Every input of the program exactly once, of its type; UserError otherwise. With `watch`, throws
  // another one naming op, node and source line of the first instruction that produced a NaN or Inf, and the
  // range of its inputs.
  void run(std::span<const Feed> feeds, const StepBlock& block);
  void run(std::initializer_list<Feed> feeds, const StepBlock& block);
  // The n-th run of these is step n of seed 0, so that dropout draws anew in each.
  void run(std::span<const Feed> feeds);
  void run(std::initializer_list<Feed> feeds);

  // Waits for the last run; rethrows its failure.
  void wait();

  // The i-th readable output of the last run, in logical layout. Waits. UserError before the first run, and where
  // the last one failed.
  Tensor output(std::size_t index = 0);
  // Any value that a program compiled with keep_all computes; `node` is of the graph that was compiled. Waits.
  // UserError before the first run, where the last one failed, for a node of another graph, and for one that no
  // output of the program needs.
  Tensor value(const Node& node);

  const Program& program() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace plexaura
