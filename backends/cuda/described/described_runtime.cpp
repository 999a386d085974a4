#include "backends/cuda/described/described_runtime.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <new>
#include <optional>
#include <sys/mman.h>
#include <utility>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/runtime/out_of_memory.h"
#include "backends/cuda/runtime/thread_device.h"
#include "core/base/error.h"

namespace plexaura::cuda {

namespace runtime {

struct Stream {};
struct Event {
  double seconds = 0;
};
struct Graph {
  std::vector<EnqueuedCall> calls;
  double seconds;  // seconds of the graph's longest chain
};

}  // namespace runtime

namespace described {

namespace {

struct State {
  const Gpu* gpu = nullptr;
  // Addresses of the pieces of the device's memory, and their bytes.
  std::map<std::byte*, std::size_t> pieces;
  std::size_t bytes_used = 0;
  std::size_t most_bytes_used = 0;
  std::optional<WorkAccount> account;
  std::optional<std::vector<EnqueuedCall>> captured;
  // The seconds of the longest captured chain on each stream so far.
  std::map<runtime::Stream*, double> chains;
};

State& state() {
  static State state;
  return state;
}

bool is_on_device(const std::byte* address) {
  const auto behind = state().pieces.upper_bound(const_cast<std::byte*>(address));
  if (behind == state().pieces.begin()) return false;
  const auto& [begin, bytes] = *std::prev(behind);
  return address < begin + bytes;
}

// Returns the names of the ops in the name of a launch. A region has them in parentheses at the end, as in
// "relu %9 of net.cpp:3 (moments+normalise+relu)" or "cast %8 of net.cpp:3 (chains 2 cast)"; a single op is
// the first word, as in "add %4 of net.cpp:5 (block.bn)".
std::string ops_of(const std::string& name) {
  const std::size_t open = name.rfind('(');
  if (open != std::string::npos) {
    std::string region = name.substr(open + 1, name.size() - open - 2);
    if (region.find('+') != std::string::npos || region.starts_with("chain")) return region;
  }
  return name.substr(0, name.find(' '));
}

// Counts a copy. On a GPU, copies to and from the host run beside the kernels, on an engine of their own.
// A copy to the host writes zeros: if the host then computes an op, its reference kernel accepts them.
void count_copy(runtime::Stream* stream, std::byte* dst, const std::byte* src, std::size_t bytes) {
  EnqueuedCall call{.kind = EnqueuedCall::Kind::copy, .what = "copy from the host"};
  call.bytes = static_cast<double>(bytes);
  if (is_on_device(src) && is_on_device(dst)) {
    call.what = "copy on the device";
    call.bytes *= 2;
    call.seconds = seconds_of(call.bytes);
  } else if (is_on_device(src)) {
    call.what = "copy to the host";
    std::memset(dst, 0, bytes);
  }
  count(std::move(call), stream);
}

}  // namespace

void describe(const Gpu& gpu) {
  state().gpu = &gpu;
  state().most_bytes_used = state().bytes_used;
}
const Gpu& described_gpu() { return *state().gpu; }
std::size_t most_bytes_used() { return state().most_bytes_used; }

bool is_counting() { return state().account || state().captured; }

double seconds_of(double bytes) { return bytes / described_gpu().bytes_in_a_second; }

void count(EnqueuedCall call, runtime::Stream* stream) {
  call.recorded = state().captured.has_value();
  if (state().captured) state().chains[stream] += call.seconds;
  (state().captured ? *state().captured : state().account->calls).push_back(std::move(call));
}

void begin_account() { state().account.emplace(); }

WorkAccount end_account() {
  WorkAccount account = std::move(*state().account);
  state().account.reset();
  return account;
}

}  // namespace described

namespace runtime {

using described::state;

int device_count() { return 1; }

void use_device_in_this_thread() {}

Device open_device(int index) {
  if (index > 0) throw UserError(fmt::format("there is no GPU {}; one is described, number 0", index));
  const described::Gpu& gpu = described::described_gpu();
  return {"cuda", fmt::format("{}, as it is described", gpu.full_name), gpu.bytes_in_a_second, ""};
}

std::byte* allocate_device(std::size_t bytes) {
  const auto memory = static_cast<std::size_t>(described::described_gpu().memory);
  if (bytes > memory - std::min(memory, state().bytes_used))
    throw OutOfMemoryError<UserError>(
        out_of_memory_text(bytes, memory - std::min(memory, state().bytes_used), memory));
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    throw DeviceError(
        fmt::format("this machine has no {} bytes of addresses for the memory of a described GPU", bytes));
  state().pieces.emplace(static_cast<std::byte*>(address), bytes);
  state().bytes_used += bytes;
  state().most_bytes_used = std::max(state().most_bytes_used, state().bytes_used);
  return static_cast<std::byte*>(address);
}

void free_device(std::byte* address) noexcept {
  const auto piece = state().pieces.find(address);
  munmap(address, piece->second);
  state().bytes_used -= piece->second;
  state().pieces.erase(piece);
}

constexpr std::align_val_t pinned_alignment{64};

std::byte* allocate_pinned(std::size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, pinned_alignment));
}
void free_pinned(std::byte* address) noexcept { ::operator delete(address, pinned_alignment); }

Stream* make_stream() { return new Stream; }
void destroy(Stream* stream) noexcept { delete stream; }

void copy(Stream* stream, std::byte* dst, const std::byte* src, std::size_t bytes) {
  if (described::is_counting()) return described::count_copy(stream, dst, src, bytes);
  std::memmove(dst, src, bytes);
}

// Makes an event. Events do nothing outside of captures, since all earlier work of a stream is done already.
Event* make_event() { return new Event; }
Event* make_awaited_event() { return make_event(); }
Event* make_timed_event() { return make_event(); }
void destroy(Event* event) noexcept { delete event; }
void record(Event* event, Stream* stream) {
  if (state().captured) event->seconds = state().chains[stream];
}
void record_in_graph(Event*, Stream*) {}
void hold(Stream* stream, Event* event) {
  if (state().captured) state().chains[stream] = std::max(state().chains[stream], event->seconds);
}
bool passed(const Event*) { return true; }
void synchronize(Event*) {}
double seconds_between(const Event*, const Event*) { return 0; }

void hold(Stream*, const Flag*, Flag) {}
void raise(Stream*, Flag* flag, Flag value) { raise(flag, value); }
void raise(Flag* flag, Flag value) { std::atomic_ref(*flag).store(value); }

void begin_capture(Stream*) {
  state().captured.emplace();
  state().chains.clear();
}

Graph* end_capture(Stream* stream) {
  auto* const graph = new Graph{std::move(*state().captured), state().chains[stream]};
  state().captured.reset();
  return graph;
}

void drop_capture(Stream*) noexcept { state().captured.reset(); }

void launch(Graph* graph, Stream*) {
  if (!state().account) throw InternalError("a program was run on a GPU that is only described");
  ++state().account->replays;
  state().account->seconds_of_chains += graph->seconds;
  auto& calls = state().account->calls;
  calls.insert(calls.end(), graph->calls.begin(), graph->calls.end());
}

void destroy(Graph* graph) noexcept { delete graph; }

}  // namespace runtime

std::byte* place_of(const std::byte* address, std::size_t) { return const_cast<std::byte*>(address); }
std::uint64_t times_freed() { return 0; }

void throw_out_of_bounds(std::int64_t index, std::int64_t count) {
  throw InternalError(fmt::format("a kernel used element {} of {}", index, count));
}

void throw_unwritten(std::int64_t index) {
  throw InternalError(fmt::format("a kernel read shared element {}, which no thread has written", index));
}

void throw_race(std::int64_t index, int thread, int other) {
  throw InternalError(
      fmt::format("the threads {} and {} race for element {} of shared memory", other, thread, index));
}

void simulate(const Call& call, std::int64_t blocks, std::size_t bytes,
              // NOLINTNEXTLINE(performance-unnecessary-value-param): another runtime keeps the body
              std::function<void(Block& block)> body) {
  if (described::is_counting())
    return described::count({.kind = EnqueuedCall::Kind::kernel,
                             .what = described::ops_of(call.name),
                             .bytes = static_cast<double>(bytes),
                             .seconds = described::seconds_of(static_cast<double>(bytes))},
                            call.stream);
  for (std::int64_t index = 0; index < blocks; ++index) {
    Block block(index, blocks);
    body(block);
  }
}

}  // namespace plexaura::cuda
