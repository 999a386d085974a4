#include "core/vm/vm.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <optional>

#include "core/device/transfer.h"
#include "core/did_you_mean.h"
#include "core/error.h"
#include "core/graph/print.h"
#include "core/vm/profile.h"
#include "core/vm/watch.h"

namespace plexaura {

namespace {

std::unique_ptr<Memory> allocate(Backend& backend, std::size_t bytes) {
  return backend.allocate(std::max<std::size_t>(bytes, 64), MemoryUse::device);
}

// One of two alternating homes of step block and inputs.
struct FeedSlot {
  std::unique_ptr<Memory> device;
  std::unique_ptr<Memory> staging;     // null where the device's memory is host memory
  std::unique_ptr<Event> copied;       // the copy from staging is done
  std::unique_ptr<Event> last_reader;  // the run that reads it is done
  bool used = false;

  std::byte* host() const { return staging ? staging->address() : device->address(); }
};

using Launches = std::vector<std::unique_ptr<Launch>>;

}  // namespace

Workspace::Workspace(Backend& backend, std::size_t bytes) : memory_(allocate(backend, bytes)) {}

struct VM::Implementation {
  std::shared_ptr<const Program> program;
  Backend& backend;
  VmOptions options;
  std::unique_ptr<Memory> constants;
  std::unique_ptr<Memory> prologue_memory;
  std::array<FeedSlot, 2> slots;
  std::size_t parity = 1;  // of the last run
  std::uint64_t placed_times = 0;

  struct Segment {
    std::size_t begin;
    std::size_t end;
    std::array<std::unique_ptr<Recording>, 2> recordings;
  };
  std::vector<Segment> segments;
  std::vector<HostPoint> host_points;  // a collective is one, too
  bool recordable = true;

  // By parity. Instructions that read no feed have one launch, in the first.
  std::array<Launches, 2> launches;
  Launches prologue;
  std::uint64_t prologue_version = 0;
  bool writes_values = false;  // applies updates
  std::vector<bool> reads_feed;
  std::size_t collective_bytes = 0;  // of the largest value that is summed
  std::optional<StagedCopy> collective_staging;
  std::vector<std::string> calls;  // of the collectives: what all ranks know them by

  Implementation(std::shared_ptr<const Program> the_program, Backend& the_backend, VmOptions the_options)
      : program(std::move(the_program)), backend(the_backend), options(std::move(the_options)) {
    check_options();
    if (options.store != nullptr) placed_times = options.store->placed_times();
    allocate_memory();
    for (const Instruction& instruction : program->prologue) prologue.push_back(bind(instruction, 0));
    for (const Instruction& instruction : program->instructions) bind_both(instruction);
    cut_segments();
  }

  void check_options() const {
    if (!options.store && (!program->placement.entries.empty()))
      throw UserError("VM: the program reads parameters; give it the store that holds them");
    if (options.store != nullptr && options.store->placed() && &options.store->backend() != &backend)
      throw UserError("VM: the store was placed on another backend; make a store for each backend");
    for (const Placement::Entry& entry : program->placement.entries) {
      const Placement::Entry* placed = options.store->placement().find(entry.name);
      if (placed == nullptr || *placed != entry)
        throw UserError(fmt::format(
            "VM: the program has '{}' at another place than the store; compile it with store.placement()",
            entry.name));
    }
    if (options.workspace && options.workspace->bytes() < program->arena_bytes)
      throw UserError(
          fmt::format("VM: the shared workspace has {} bytes and the program needs {}; make it as large as "
                      "the largest program's",
                      options.workspace->bytes(), program->arena_bytes));
  }

  void allocate_memory() {
    if (!options.workspace) options.workspace = std::make_shared<Workspace>(backend, program->arena_bytes);
    constants = allocate(backend, program->constants.size());
    copy_to_device(backend, constants->address(), program->constants.data(), program->constants.size());
    prologue_memory = allocate(backend, program->prologue_bytes);
    for (FeedSlot& slot : slots) {
      slot.device = allocate(backend, program->feed_bytes);
      if (!backend.info().host_memory)
        slot.staging = backend.allocate(program->feed_bytes, MemoryUse::staging);
      slot.copied = backend.make_event();
      slot.last_reader = backend.make_event();
    }
  }

  Address address(const Place& place, std::size_t which) const {
    const auto offset = static_cast<std::size_t>(place.offset);
    switch (place.space) {
      case Place::Space::arena:
        return options.workspace->address() + offset;
      case Place::Space::feed:
        return slots[which].device->address() + offset;
      case Place::Space::constant:
        return constants->address() + offset;
      case Place::Space::prologue:
        return prologue_memory->address() + offset;
      case Place::Space::value:
        return options.store->values() + offset;
      case Place::Space::gradient:
        return options.store->gradients() + offset;
      case Place::Space::state:
        return options.store->state(place.index) + offset;
    }
    throw InternalError("a place outside all spaces");
  }

  std::unique_ptr<Launch> bind(const Instruction& instruction, std::size_t which) const {
    if (!instruction.kernel) return nullptr;
    Binding binding;
    for (const auto& input : instruction.inputs)
      binding.inputs.push_back(input ? address(input->place, which) : nullptr);
    for (const auto& output : instruction.outputs)
      binding.outputs.push_back(output ? address(output->place, which) : nullptr);
    if (instruction.workspace_bytes > 0) binding.workspace = address(instruction.workspace, which);
    binding.name = &instruction.name;
    return instruction.kernel->bind(binding);
  }

  void bind_both(const Instruction& instruction) {
    const auto lies_in = [](Place::Space space) {
      return [space](const auto& slot) { return slot && slot->place.space == space; };
    };
    const bool feed = std::ranges::any_of(instruction.inputs, lies_in(Place::Space::feed));
    reads_feed.push_back(feed);
    if (std::ranges::any_of(instruction.outputs, lies_in(Place::Space::value))) writes_values = true;
    launches[0].push_back(bind(instruction, 0));
    launches[1].push_back(feed ? bind(instruction, 1) : nullptr);
  }

  Launch& launch(std::size_t index) const { return *launches[reads_feed[index] ? parity : 0][index]; }

  // Host points and collectives end a segment. At one place the collective comes first: it completes its
  // instruction.
  void cut_segments() {
    for (std::size_t index = 0; index < program->instructions.size(); ++index)
      if (!program->instructions[index].kernel) {
        prepare_collective(program->instructions[index]);
        const std::size_t ordinal = calls.size() - 1;
        host_points.push_back({index + 1, [this, index, ordinal] {
                                 run_collective(program->instructions[index], calls[ordinal]);
                               }});
      }
    if (!calls.empty()) collective_staging.emplace(backend, collective_bytes);
    host_points.insert(host_points.end(), options.host_points.begin(), options.host_points.end());
    std::ranges::stable_sort(host_points, {}, &HostPoint::instruction);
    std::size_t begin = 0;
    for (const HostPoint& point : host_points) {
      segments.push_back({begin, point.instruction, {}});
      begin = point.instruction;
    }
    segments.push_back({begin, program->instructions.size(), {}});
  }

  void prepare_collective(const Instruction& instruction) {
    if (options.collective == nullptr)
      throw UserError(fmt::format("VM: {} needs other ranks; give the VM a collective", instruction.name));
    const Slot& slot = *instruction.inputs[0];
    collective_bytes = std::max(collective_bytes, static_cast<std::size_t>(slot.layout.bytes(slot.type)));
    // Without the number of the node: ranks whose batches differ in size have other ones.
    const NodeRecord& record = program->graph->record(instruction.nodes[0]);
    calls.push_back(fmt::format("{} of {}, number {} of the program", record.op->name(),
                                to_string(record.origin), calls.size() + 1));
  }

  void run_collective(const Instruction& instruction, const std::string& call) {
    const Slot& from = *instruction.inputs[0];
    const auto bytes = static_cast<std::size_t>(from.layout.bytes(from.type));
    const ProfileSpan span(options.profile, instruction.name, "communication");
    collective_staging->to_host(address(from.place, parity), bytes);
    options.collective->sum(from.type.dtype, collective_staging->host(),
                            from.layout.elements(from.type.shape), call);
    if (instruction.outputs[0])
      collective_staging->to_device(address(instruction.outputs[0]->place, parity), bytes);
  }

  // Before anything changes, so that a wrong call leaves the VM as it was.
  void check(std::span<const Feed> feeds) const {
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const Feed& given = feeds[i];
      if (std::ranges::find(feeds.first(i), given.name(), &Feed::name) !=
          feeds.begin() + static_cast<std::ptrdiff_t>(i))
        throw UserError(fmt::format("VM::run: the input '{}' was fed twice; feed each once", given.name()));
      const auto wanted = std::ranges::find(program->feeds, given.name(), &Program::Feed::name);
      if (wanted == program->feeds.end()) {
        if (std::ranges::find(program->unread_inputs, given.name()) == program->unread_inputs.end())
          throw unknown_input(given.name());
      } else if (given.tensor().type() != wanted->type) {
        throw UserError(fmt::format("VM::run: the input '{}' is {} and was fed {}", given.name(),
                                    to_string(wanted->type), to_string(given.tensor().type())));
      }
    }
    for (const Program::Feed& wanted : program->feeds)
      if (std::ranges::find(feeds, wanted.name, &Feed::name) == feeds.end())
        throw UserError(fmt::format("VM::run: the input '{}' was not fed; it is {}", wanted.name,
                                    to_string(wanted.type)));
  }

  UserError unknown_input(std::string_view name) const {
    std::vector<std::string> known = program->unread_inputs;
    for (const Program::Feed& feed : program->feeds) known.push_back(feed.name);
    return UserError(
        fmt::format("VM::run: the program has no input '{}'{}", name, did_you_mean(name, known)));
  }

  void feed(std::span<const Feed> feeds, const StepBlock& block) {
    FeedSlot& slot = slots[parity ^ 1];
    if (slot.used) slot.last_reader->wait();
    parity ^= 1;
    slot.used = true;
    write_step_block(block, slot.host());
    for (const Feed& given : feeds) {
      const auto wanted = std::ranges::find(program->feeds, given.name(), &Program::Feed::name);
      if (wanted != program->feeds.end())
        std::memcpy(slot.host() + wanted->offset, given.tensor().data(), given.tensor().bytes());
    }
    if (!slot.staging) return;
    backend.copy(Stream::copy, slot.device->address(), slot.staging->address(), program->feed_bytes);
    slot.copied->record(Stream::copy);
    slot.copied->hold(Stream::compute);
  }

  void run(std::span<const Feed> feeds, const StepBlock& block) {
    check_store();
    check(feeds);
    feed(feeds, block);
    const auto mark_end = [this] {
      slots[parity].last_reader->record(Stream::compute);
      if (writes_values) options.store->raise_version();
    };
    try {
      run_segments();
    } catch (...) {
      mark_end();  // what was launched until then still reads the slot, and may have written values
      throw;
    }
    mark_end();
  }

  void run_segments() {
    refresh_prologue();
    for (std::size_t i = 0; i < segments.size(); ++i) {
      run_segment(segments[i]);
      if (i < host_points.size()) host_points[i].action();
    }
  }

  void check_has_run(std::string_view reader) const {
    if (!slots[parity].used)
      throw UserError(fmt::format("VM::{}: the program has not run yet; call run() first", reader));
  }

  void check_store() const {
    if (options.store != nullptr && options.store->placed_times() != placed_times)
      throw UserError(
          "VM::run: the store was placed anew since the VM was made; compile with the new placement and make "
          "a new VM");
  }

  void refresh_prologue() {
    // What derives from constants alone needs no store, and is computed once.
    const std::uint64_t version = options.store != nullptr ? options.store->version() : 1;
    if (program->prologue.empty() || prologue_version == version) return;
    for (std::size_t i = 0; i < prologue.size(); ++i) {
      if (observed())
        run_observed(*prologue[i], program->prologue[i]);
      else
        run_launch(*prologue[i], program->prologue[i]);
    }
    prologue_version = version;
  }

  bool observed() const { return options.watch || options.profile != nullptr; }

  void run_segment(Segment& segment) {
    if (observed()) {
      for (std::size_t index = segment.begin; index < segment.end; ++index)
        if (program->instructions[index].kernel) run_observed(launch(index), program->instructions[index]);
      return;
    }
    auto& recording = segment.recordings[parity];
    if (!recording && recordable && segment.begin < segment.end) {
      recording = backend.record([&] { run_plain(segment); });
      recordable = recording != nullptr;
    }
    if (recording)
      recording->replay();
    else
      run_plain(segment);
  }

  void run_plain(const Segment& segment) {
    for (std::size_t index = segment.begin; index < segment.end; ++index)
      if (program->instructions[index].kernel) run_launch(launch(index), program->instructions[index]);
  }

  static void run_launch(Launch& launch, const Instruction& instruction) {
    try {
      launch.run();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw DeviceError(fmt::format("{}: {}", instruction.name, error.what()));
    }
  }

  void run_observed(Launch& launch, const Instruction& instruction) {
    const double start = options.profile != nullptr ? options.profile->now() : 0;
    run_launch(launch, instruction);
    wait_for(backend);
    if (options.profile != nullptr)
      options.profile->add(instruction.name, "instruction", start, options.profile->now() - start,
                           detail_of(*program, instruction, options.profile->now() - start));
    if (options.watch) check_finite(instruction, [this](const Slot& slot) { return read(slot); });
  }

  Tensor read(const Slot& slot) {
    std::vector<std::byte> physical(static_cast<std::size_t>(slot.layout.bytes(slot.type)));
    copy_to_host(backend, physical.data(), address(slot.place, parity), physical.size());
    Tensor tensor(slot.type);
    reorder(physical.data(), slot.layout, tensor.data(), Layout::row_major(slot.type.shape.rank()),
            slot.type);
    return tensor;
  }
};

VM::VM(std::shared_ptr<const Program> program, Backend& backend, VmOptions options) {
  if (options.store != nullptr && !options.store->placed()) options.store->place(program->placement, backend);
  implementation_ = std::make_unique<Implementation>(std::move(program), backend, std::move(options));
}

VM::~VM() { settle(implementation_->backend); }

void VM::run(std::span<const Feed> feeds, const StepBlock& block) { implementation_->run(feeds, block); }

void VM::run(std::initializer_list<Feed> feeds, const StepBlock& block) {
  run(std::span(feeds.begin(), feeds.size()), block);
}

void VM::wait() { wait_for(implementation_->backend); }

Tensor VM::output(std::size_t index) {
  if (index >= program().outputs.size())
    throw UserError(
        fmt::format("VM::output({}): the program has {} readable outputs", index, program().outputs.size()));
  implementation_->check_has_run(fmt::format("output({})", index));
  wait();
  return implementation_->read(program().outputs[index]);
}

Tensor VM::value(const Node& node) {
  const auto found = program().kept.find(node.value());
  if (found == program().kept.end())
    throw UserError(
        fmt::format("VM::value({}): the program keeps no intermediate values; compile it with keep_all",
                    name_of(node.graph(), node.id())));
  implementation_->check_has_run(fmt::format("value({})", name_of(node.graph(), node.id())));
  wait();
  return implementation_->read(found->second);
}

const Program& VM::program() const { return *implementation_->program; }

}  // namespace plexaura
