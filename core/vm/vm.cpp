#include "core/vm/vm.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <optional>

#include "core/base/busy.h"
#include "core/base/error.h"
#include "core/base/profile.h"
#include "core/device/backend_use.h"
#include "core/device/transfer.h"
#include "core/graph/print.h"
#include "core/vm/host_calls.h"
#include "core/vm/instruction_error.h"
#include "core/vm/loop_launch.h"
#include "core/vm/program_memory.h"
#include "core/vm/watch.h"

namespace plexaura {

namespace {

constexpr const char* one_thread =
    "a VM serves one thread at a time, and another thread is in it now; make a VM of the program for each "
    "thread";

using Launches = std::vector<std::unique_ptr<Launch>>;

bool lies_in(const std::vector<std::optional<Slot>>& slots, Place::Space space) {
  return std::ranges::any_of(slots, [&](const auto& slot) { return slot && slot->place.space == space; });
}

bool reads_feeds(const Instruction& instruction) { return lies_in(instruction.inputs, Place::Space::feed); }

// True if the node belongs to the graph that was compiled. The compiled graph keeps the graph's op objects,
// which no other graph has.
bool is_of(const Program& program, const Node& node) {
  const std::shared_ptr<const Op>& op = node.graph().record(node.id()).op;
  for (NodeId id = 0; id < program.graph->size(); ++id)
    if (program.graph->record(id).op == op) return true;
  return false;
}

}  // namespace

struct VM::Implementation {
  // Launches and recordings that are bound to one feed slot.
  struct OfSlot {
    Launches launches;  // launches of instructions that read feeds; null for all others
    // Recording of each segment; null if it was not recorded.
    std::vector<std::unique_ptr<Recording>> recordings;
  };
  // The point that a run has reached.
  struct Position {
    OfSlot* slot = nullptr;  // the feed slot from which the run reads its feeds
    std::size_t segment = 0;
    std::size_t instruction = 0;  // index of the next instruction to be launched
    std::size_t inner = 0;        // index of the segment's next inner point
    // True if a recording has run the segment, with the copies and events of its inner points.
    bool is_replayed = false;
  };

  std::shared_ptr<const Program> program;
  BackendUse backend_use;
  Backend& backend;
  std::optional<ParameterStore> store;
  bool watch;
  Profile* profile;
  std::uint64_t placed_times;  // ParameterStore::placed_times() when this object was made
  ProgramMemory memory;
  HostCalls host_calls;
  std::vector<Segment> segments;
  bool recordable = true;  // false once the backend has refused to record

  Launches launches;  // launches of instructions that read no feeds; null for all others
  std::vector<OfSlot> of_slots;
  Position now;  // point that the present run has reached
  Launches prologue;
  bool bound = false;          // true once `launches` is filled
  bool writes_values = false;  // true if the program writes to the store's values
  bool failed = false;         // true if the last run failed, so that there are no outputs to read
  double steps = 0;            // the number of completed runs without a StepBlock
  BusyFlag busy;

  Implementation(std::shared_ptr<const Program> the_program, Backend& the_backend, VmOptions options)
      : program(std::move(the_program)),
        backend_use(the_backend),
        backend(the_backend),
        store(options.store != nullptr ? std::optional(options.store->share()) : std::nullopt),
        watch(options.watch),
        profile(options.profile),
        placed_times(store ? store->placed_times() : 0),
        memory(*program, backend, store ? &*store : nullptr, std::move(options.workspace),
               options.prologue ? options.prologue : std::make_shared<PrologueMemory>(program)),
        host_calls(*program, backend, options.collective, memory, profile,
                   std::bind_front(&Implementation::observe, this)) {
    for (const Instruction& instruction : program->instructions)
      if (lies_in(instruction.outputs, Place::Space::value)) writes_values = true;
    if (program->prologue.empty()) bind_fixed();
    segments = cut_segments(std::move(options.host_points), program->instructions);
  }

  // Binds the instructions that read no feeds.
  void bind_fixed() {
    for (const Instruction& instruction : program->instructions)
      launches.push_back(reads_feeds(instruction) ? nullptr : bind(instruction));
    bound = true;
  }

  // Called in the first run, not earlier: the memory of a prologue may be large, and a program for validation may never
  // run.
  void bind_with_prologue() {
    memory.allocate_prologue();
    prologue.clear();  // clears the launches of a run that failed here
    launches.clear();
    for (const Instruction& instruction : program->prologue) prologue.push_back(bind(instruction));
    bind_fixed();
  }

  // Binds the instructions that read feeds, in the first run from this slot.
  void bind_to(const FeedSlot& slot) {
    if (of_slots.size() <= slot.index()) of_slots.resize(slot.index() + 1);
    OfSlot& of_slot = of_slots[slot.index()];
    now = {.slot = &of_slot};
    if (!of_slot.recordings.empty()) return;
    of_slot.launches.resize(program->instructions.size());
    for (std::size_t i = 0; i < of_slot.launches.size(); ++i)
      if (const Instruction& instruction = program->instructions[i]; reads_feeds(instruction))
        of_slot.launches[i] = bind(instruction);
    of_slot.recordings.resize(segments.size());
  }

  std::unique_ptr<Launch> bind(const Instruction& instruction) {
    if (is_on_host(instruction)) return nullptr;
    Binding binding;
    for (const auto& input : instruction.inputs)
      binding.inputs.push_back(input ? memory.address(input->place) : nullptr);
    for (const auto& output : instruction.outputs)
      binding.outputs.push_back(output ? memory.address(output->place) : nullptr);
    if (instruction.workspace_bytes > 0) binding.workspace = memory.address(instruction.workspace);
    binding.name = &instruction.name;
    if (const auto* loop = std::get_if<LoopWork>(&instruction.work))
      return std::make_unique<LoopLaunch>(*loop, binding, memory.address(loop->constants), backend,
                                          observer_of_loops());
    return std::get<KernelWork>(instruction.work).kernel->bind(binding);
  }

  void begin(std::span<const Feed> feeds, const StepBlock& block) {
    check_usable();
    if (!bound) bind_with_prologue();
    memory.feeds().fill(feeds, block);
    failed = true;
    try {
      bind_to(*memory.feeds().current());
      refresh_prologue();
    } catch (...) {
      mark_failed_end();
      throw;
    }
  }

  // Runs on to the next host point and returns its id. Returns nothing at the end of the program.
  std::optional<std::size_t> run_on() {
    while (now.segment < segments.size()) {
      const Segment& segment = segments[now.segment];
      if (now.inner == 0 && now.instruction == segment.begin) replay(segment);
      if (const HostPoint* point = launch(segment, now)) return point->id;
      if (segment.ends_on_host) host_calls.run(segment.end - 1);
      now = {.slot = now.slot, .segment = now.segment + 1, .instruction = segment.end};
      if (segment.then) return segment.then;
    }
    return std::nullopt;
  }

  // Runs a whole segment by its recording, unless it cannot be recorded or is observed. A slot's first run records.
  void replay(const Segment& segment) {
    std::unique_ptr<Recording>& recording = now.slot->recordings[now.segment];
    if (!recording && recordable && !observed() && segment.begin < segment.end) {
      recording = backend.record([&, recorded = now]() mutable {
        while (launch(segment, recorded) != nullptr) {
        }
      });
      recordable = recording != nullptr;
    }
    if (!recording) return;
    recording->replay();
    now.instruction = segment.end;
    now.is_replayed = true;
  }

  // Launches the instructions of a segment from `at` up to its next inner point, and enqueues the copies and events of
  // this point. Returns the point, or null at the end of the segment.
  const HostPoint* launch(const Segment& segment, Position& at) {
    for (;; ++at.instruction) {
      if (at.inner < segment.inner.size() && segment.inner[at.inner].instruction <= at.instruction) {
        const HostPoint& point = segment.inner[at.inner++];
        if (!at.is_replayed) point.enqueue();
        return &point;
      }
      if (at.instruction == segment.end) return nullptr;
      Launch* const launch = launch_of(at.instruction);
      if (launch == nullptr) continue;
      const Instruction& instruction = program->instructions[at.instruction];
      const double start = time();
      try {
        launch->run();
      } catch (...) {
        rethrow_as_of(instruction);
      }
      observe(instruction, start);
    }
  }

  // Returns the launch of an instruction. Returns null for an instruction that the host carries out after its
  // segment.
  Launch* launch_of(std::size_t index) const {
    Launch* launch = launches[index].get();
    return launch != nullptr ? launch : now.slot->launches[index].get();
  }

  bool observed() const { return watch || profile != nullptr; }

  double time() const { return profile != nullptr ? profile->now() : 0; }

  // Profiles and checks an instruction that has just run. `start` is when it began, in microseconds of the
  // profile.
  void observe(const Instruction& instruction, double start) {
    observe_of(*program, instruction, start, [this](const Slot& slot) { return memory.address(slot.place); });
  }

  void observe_of(const Program& its, const Instruction& instruction, double start,
                  const AddressOf& address) {
    if (!observed()) return;
    wait_for(backend);
    if (profile != nullptr) {
      const double duration = profile->now() - start;
      const bool sums_over_ranks = std::holds_alternative<CollectiveWork>(instruction.work);
      profile->add(instruction.name, sums_over_ranks ? "communication" : "instruction", start, duration,
                   detail_of(its, instruction, duration));
    }
    if (watch)
      check_finite(instruction, [&](const Slot& slot) {
        return read_value(backend, address(slot), slot.type, slot.layout);
      });
  }

  // Returns empty functions if nothing observes the instructions.
  LoopObserver observer_of_loops() {
    if (!observed()) return {};
    return {std::bind_front(&Implementation::time, this), std::bind_front(&Implementation::observe_of, this)};
  }

  void refresh_prologue() {
    if (prologue.empty()) return;
    // Without a store, the prologue depends only on constants and runs once.
    memory.prologue().refresh(store ? store->version() : 1, [this] { run_prologue(); });
  }

  void run_prologue() {
    for (std::size_t i = 0; i < prologue.size(); ++i) {
      const Instruction& instruction = program->prologue[i];
      const double start = time();
      try {
        prologue[i]->run();
      } catch (...) {
        rethrow_as_of(instruction);
      }
      observe(instruction, start);
    }
  }

  void mark_end() {
    if (writes_values) store->raise_version();
    memory.feeds().mark_read();
  }

  // Called when a run fails. Work that was launched before the failure still reads the feeds, and may have
  // written values. Further failures are ignored, so that only the one that ended the run is reported. A
  // backend that was destroyed has no work.
  void mark_failed_end() noexcept {
    if (!backend_use.exists()) return;
    try {
      mark_end();
    } catch (...) {
      drain(backend);
    }
  }

  // Throws UserError if the addresses that the launches use are no longer valid.
  void check_usable() const {
    backend_use.get();
    if (store && store->placed_times() != placed_times)
      throw UserError(
          "the store was placed anew since this program was compiled for it, because a Trainer or an "
          "Optimizer was made on it since; use the newest of them, or for a VM compile with "
          "store.placement() "
          "again");
  }

  void wait() {
    backend_use.get();
    try {
      wait_for(backend);
    } catch (...) {
      failed = true;
      throw;
    }
  }

  void check_has_run(std::string_view reader) const {
    if (memory.feeds().current() == nullptr)
      throw UserError(fmt::format("VM::{}: the program has not run yet; call run() first", reader));
    if (failed)
      throw UserError(
          fmt::format("VM::{}: the last run failed and left nothing to read; call run() again", reader));
  }

  Tensor read(const Slot& slot) const {
    return read_value(backend, memory.address(slot.place), slot.type, slot.layout);
  }
};

VM::VM(std::shared_ptr<const Program> program, Backend& backend, VmOptions options) {
  if (program == nullptr) throw UserError("VM: the program is null; give the one that compile() returned");
  const std::lock_guard turn(backend.turn());
  if (options.store != nullptr && !options.store->placed()) options.store->place(program->placement, backend);
  implementation_ = std::make_unique<Implementation>(std::move(program), backend, std::move(options));
}

VM::~VM() {
  // Keeps the backend alive while this thread holds its lock.
  const BackendUse use = implementation_->backend_use;
  if (!use.exists()) return;
  const std::lock_guard turn(implementation_->backend.turn());
  drain(implementation_->backend);
  implementation_.reset();
}

void VM::run(std::span<const Feed> feeds, const StepBlock& block) {
  VmRun run(*this, feeds, block);
  while (run.next()) {
  }
}

void VM::run(std::span<const Feed> feeds) {
  VmRun run(*this, feeds);
  while (run.next()) {
  }
}

void VM::run(std::initializer_list<Feed> feeds) { run(std::span(feeds.begin(), feeds.size())); }

void VM::run(std::initializer_list<Feed> feeds, const StepBlock& block) {
  run(std::span(feeds.begin(), feeds.size()), block);
}

void VM::wait() {
  const InUse use(implementation_->busy, "a VM", one_thread);
  implementation_->wait();
}

Tensor VM::output(std::size_t index) {
  if (index >= program().outputs.size())
    throw UserError(
        fmt::format("VM::output({}): the program has {} readable outputs", index, program().outputs.size()));
  const InUse use(implementation_->busy, "a VM", one_thread);
  implementation_->check_has_run(fmt::format("output({})", index));
  implementation_->wait();
  return implementation_->read(program().outputs[index]);
}

Tensor VM::value(const Node& node) {
  const auto found = program().kept.find(node.value());
  if (found == program().kept.end())
    throw UserError(fmt::format("VM::value({}): {}", name_of(node.graph(), node.id()),
                                program().kept.empty()
                                    ? "the program keeps no intermediate values; compile it with keep_all"
                                    : "no output of the program needs it; make it an output"));
  if (!is_of(program(), node))
    throw UserError(
        fmt::format("VM::value({}): the node belongs to another graph than the one that was compiled",
                    name_of(node.graph(), node.id())));
  const InUse use(implementation_->busy, "a VM", one_thread);
  implementation_->check_has_run(fmt::format("value({})", name_of(node.graph(), node.id())));
  implementation_->wait();
  return implementation_->read(found->second);
}

const Program& VM::program() const { return *implementation_->program; }

VmRun::VmRun(VM& vm, std::span<const Feed> feeds, const StepBlock& block)
    : vm_(*vm.implementation_), use_(vm_.busy, "a VM", one_thread) {
  vm_.begin(feeds, block);
}

VmRun::VmRun(VM& vm, std::span<const Feed> feeds)
    : vm_(*vm.implementation_), use_(vm_.busy, "a VM", one_thread), is_counted_(true) {
  vm_.begin(feeds, {.step = vm_.steps + 1});
}

VmRun::~VmRun() {
  if (!has_ended_) vm_.mark_failed_end();
}

std::optional<std::size_t> VmRun::next() {
  std::optional<std::size_t> point;
  proceed([&] { point = vm_.run_on(); });
  if (!point) end();
  return point;
}

void VmRun::end() {
  proceed([&] {
    vm_.mark_end();
    has_ended_ = true;
    vm_.failed = false;
    if (is_counted_) ++vm_.steps;
  });
}

template <class Work>
void VmRun::proceed(const Work& work) {
  if (has_ended_ && vm_.failed) throw UserError("VmRun: this run has failed; begin another one");
  if (has_ended_) return;
  try {
    vm_.check_usable();
    work();
  } catch (...) {
    has_ended_ = true;
    vm_.mark_failed_end();
    throw;
  }
}

}  // namespace plexaura
