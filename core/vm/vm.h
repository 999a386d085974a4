#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/busy.h"
#include "core/base/export.h"
#include "core/compile/program.h"
#include "core/compile/step_block.h"
#include "core/exchange/collective.h"
#include "core/params/parameter_store.h"
#include "core/vm/feed.h"
#include "core/vm/prologue_memory.h"
#include "core/vm/segments.h"
#include "core/vm/workspace.h"

namespace plexaura {

struct VmOptions {
  ParameterStore* store = nullptr;  // needed if the program reads parameters, buffers or arenas
  // Memory for intermediate values and feeds. Programs that share a workspace overwrite each other's values. Null: the VM
  // allocates its own.
  std::shared_ptr<Workspace> workspace = {};
  Collective* collective = nullptr;         // needed for collective ops without a kernel of the backend
  std::vector<HostPoint> host_points = {};  // points at which a VmRun stops, in any order
  bool watch = false;                       // run() checks the results of each instruction for NaN and Inf
  // Records an event for each instruction; the VM then waits after each instruction.
  class Profile* profile = nullptr;
  // Memory for values that are computed from parameters alone. VMs of the same program, backend and store may share it.
  // Null: the VM makes its own.
  std::shared_ptr<PrologueMemory> prologue = {};
};

// Runs a program. Use one VM per thread: a call while another thread is in a call throws UserError. VMs may
// share the program. run() enqueues the work. On an asynchronous device it returns before the work is done.
// It allocates nothing after it has run from each slot of its workspace's FeedMemory. A VM shares the store,
// and a backend that a std::shared_ptr owns. If any other backend was destroyed, calls throw UserError.
class PLEXAURA_API VM {
 public:
  VM(std::shared_ptr<const Program> program, Backend& backend, VmOptions options = {});
  ~VM();
  VM(const VM&) = delete;
  VM& operator=(const VM&) = delete;

  // Runs the program once. Throws UserError unless every input of the program is fed exactly once with its type. With
  // `watch`, throws UserError for the first instruction that produced a NaN or Inf, with its op, node and source line and
  // the ranges of its inputs.
  void run(std::span<const Feed> feeds, const StepBlock& block);
  void run(std::initializer_list<Feed> feeds, const StepBlock& block);
  // Runs without a step block: the n-th of these runs is step n of seed 0, so that dropout draws anew in each run.
  void run(std::span<const Feed> feeds);
  void run(std::initializer_list<Feed> feeds);

  // Waits for the last run. Throws its failure.
  void wait();

  // Waits for the last run and returns its readable output with this index, in logical layout. Throws UserError before the
  // first run, and if the last run failed.
  Tensor output(std::size_t index = 0);
  // Waits for the last run and returns the value of any node of the graph that was compiled. The program must be compiled
  // with keep_all. Throws UserError before the first run, if the last run failed, for a node of another graph, and for a
  // node that no output of the program needs.
  Tensor value(const Node& node);

  const Program& program() const;

 private:
  friend class VmRun;
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// A run that stops at the host points of the VM:
//
//   VmRun run(vm, feeds, block);
//   while (const std::optional<std::size_t> point = run.next()) work_at(*point);
//
// VM::run() is the same without the work. The run has failed if next() or end() throws, or if the VmRun is destroyed
// before the run has ended. The VM serves no other run as long as the VmRun exists.
class PLEXAURA_API VmRun {
 public:
  // Begin a run, with or without a step block; see VM::run(). The VM must outlive the VmRun.
  VmRun(VM& vm, std::span<const Feed> feeds, const StepBlock& block);
  VmRun(VM& vm, std::span<const Feed> feeds);
  ~VmRun();
  VmRun(const VmRun&) = delete;
  VmRun& operator=(const VmRun&) = delete;

  // Runs on to the next host point and returns its id. Returns nothing when the run has ended. Throws UserError after the
  // run has failed, and if the backend was destroyed or the store was placed anew at the last host point.
  std::optional<std::size_t> next();
  // Ends the run at the host point where it has stopped: the rest of the program is skipped. This must not be a point with
  // HostPoint::enqueue, after which instructions may be enqueued already. Does nothing when the run has ended. Throws
  // UserError as next() does.
  void end();

 private:
  // Calls `work`, unless the run has ended. Throws UserError if the run has failed before. If `work` throws, the run has
  // failed.
  template <class Work>
  void proceed(const Work& work);

  VM::Implementation& vm_;
  InUse use_;
  bool is_counted_ = false;  // the VM counts the run as a step
  bool has_ended_ = false;
};

}  // namespace plexaura
