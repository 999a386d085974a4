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

// True if the node belongs to the graph that was compiled. The passes keep its op objects, which no other graph has.
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
    Launches launches;  // of instructions that read feeds; null for all others
    std::vector<std::unique_ptr<Recording>> recordings;  // one for each segment that has run
  };

  std::shared_ptr<const Program> program;
  BackendUse backend_use;
  Backend& backend;
  std::optional<ParameterStore> store;
  bool watch;
  Profile* profile;
  std::uint64_t placed_times;  // of the store, when this was made
  ProgramMemory memory;
  HostCalls host_calls;
  std::vector<Segment> segments;
  bool recordable = true;  // false once the backend has refused to record

  Launches launches;  // of instructions that read no feeds; null for all others
  std::vector<OfSlot> of_slots;
  OfSlot* now = nullptr;  // for the slot of this run
  Launches prologue;
  bool bound = false;                  // `launches` is filled
  std::uint64_t prologue_version = 0;  // of the store, when the prologue ran last
  bool writes_values = false;          // the program applies updates
  bool failed = false;                 // the last run failed, so there are no outputs to read
  double steps = 0;                    // the number of runs without a StepBlock
  BusyFlag busy;

  Implementation(std::shared_ptr<const Program> the_program, Backend& the_backend, VmOptions options)
      : program(std::move(the_program)),
        backend_use(the_backend),
        backend(the_backend),
        store(options.store != nullptr ? std::optional(options.store->share()) : std::nullopt),
        watch(options.watch),
        profile(options.profile),
        placed_times(store ? store->placed_times() : 0),
        memory(*program, backend, store ? &*store : nullptr, std::move(options.workspace)),
        host_calls(*program, backend, options.collective, memory, profile,
                   std::bind_front(&Implementation::observe, this)) {
    for (const Instruction& instruction : program->instructions)
      if (lies_in(instruction.outputs, Place::Space::value)) writes_values = true;
    if (program->prologue.empty()) bind_fixed();
    // Before other points at the same instruction, because a host call completes the instruction before them.
    std::vector<HostPoint> points = host_calls.host_points();
    points.insert(points.end(), options.host_points.begin(), options.host_points.end());
    segments = cut_segments(std::move(points), program->instructions.size());
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
    prologue.clear();  // left over from a run that failed here
    launches.clear();
    for (const Instruction& instruction : program->prologue) prologue.push_back(bind(instruction));
    bind_fixed();
  }

  // Binds the instructions that read feeds, in the first run from this slot.
  void bind_to(const FeedSlot& slot) {
    if (of_slots.size() <= slot.index()) of_slots.resize(slot.index() + 1);
    now = &of_slots[slot.index()];
    if (!now->recordings.empty()) return;
    now->launches.resize(program->instructions.size());
    for (std::size_t i = 0; i < now->launches.size(); ++i)
      if (const Instruction& instruction = program->instructions[i]; reads_feeds(instruction))
        now->launches[i] = bind(instruction);
    now->recordings.resize(segments.size());
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

  void run(std::span<const Feed> feeds, const StepBlock& block) {
    backend_use.get();
    check_store();
    if (!bound) bind_with_prologue();
    memory.feeds().fill(feeds, block);
    failed = true;
    try {
      bind_to(*memory.feeds().current());
      refresh_prologue();
      for (std::size_t i = 0; i < segments.size(); ++i) {
        run_segment(segments[i], now->recordings[i]);
        if (segments[i].then && !segments[i].then()) break;
      }
    } catch (...) {
      mark_failed_end();
      throw;
    }
    mark_end();
    failed = false;
  }

  void run_segment(const Segment& segment, std::unique_ptr<Recording>& recording) {
    if (!recording && recordable && !observed() && segment.begin < segment.end) {
      recording = backend.record([&] { launch(segment, /*with_actions=*/false); });
      recordable = recording != nullptr;
    }
    if (!recording) return launch(segment, /*with_actions=*/true);
    recording->replay();
    for (const HostPoint& point : segment.inner) point.action();
  }

  // Launches the instructions of a segment. Its inner points enqueue their copies and events between them. With
  // `with_actions` their actions are called at once.
  void launch(const Segment& segment, bool with_actions) {
    const Instruction* running = nullptr;
    auto point = segment.inner.begin();
    try {
      for (std::size_t i = segment.begin;; ++i) {
        for (; point != segment.inner.end() && point->instruction == i; ++point) {
          point->enqueue();
          if (with_actions) point->action();
        }
        if (i == segment.end) return;
        Launch* const launch = launch_of(i);
        if (launch == nullptr) continue;
        const double start = time();
        running = &program->instructions[i];
        launch->run();
        running = nullptr;
        observe(program->instructions[i], start);
      }
    } catch (...) {
      if (running != nullptr) rethrow_as_of(*running);
      throw;
    }
  }

  // Returns null for an instruction that the host carries out after its segment.
  Launch* launch_of(std::size_t index) const {
    Launch* launch = launches[index].get();
    return launch != nullptr ? launch : now->launches[index].get();
  }

  bool observed() const { return watch || profile != nullptr; }

  double time() const { return profile != nullptr ? profile->now() : 0; }

  // Profiles and checks an instruction that began at `start`, in microseconds of the profile.
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
    // Without a store, the prologue depends only on constants and runs once.
    const std::uint64_t version = store ? store->version() : 1;
    if (prologue_version == version) return;
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
    prologue_version = version;
  }

  void mark_end() {
    if (writes_values) store->raise_version();
    memory.feeds().mark_read();
  }

  // Called when a run fails. Work that was launched before still reads the feeds, and may have written values. Further
  // failures are ignored, so that only the one that ended the run is reported.
  void mark_failed_end() noexcept {
    try {
      mark_end();
    } catch (...) {
      settle(backend);
    }
  }

  void check_store() const {
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
  const BackendUse use = implementation_->backend_use;  // keeps the backend alive while its turn is held
  if (!use.exists()) return;
  const std::lock_guard turn(implementation_->backend.turn());
  settle(implementation_->backend);
  implementation_.reset();
}

void VM::run(std::span<const Feed> feeds, const StepBlock& block) {
  const InUse use(implementation_->busy, "a VM", one_thread);
  implementation_->run(feeds, block);
}

void VM::run(std::span<const Feed> feeds) {
  const InUse use(implementation_->busy, "a VM", one_thread);
  implementation_->run(feeds, {.step = implementation_->steps + 1});
  ++implementation_->steps;
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

}  // namespace plexaura
