// The functions of backends/cuda/runtime/runtime.h, and what kernels need, on the simulated device.

#include "backends/cuda/runtime/runtime.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "backends/cuda/kernels/call.h"
#include "backends/cuda/runtime/thread_device.h"
#include "core/base/error.h"
#include "tests/support/simulated_cuda/simulation.h"

namespace plexaura::cuda {

namespace runtime {

static simulation::Device& device() { return simulation::Device::get(); }

// Host memory that CUDA does not know must not be used in an asynchronous copy.
static std::byte* real(const std::byte* address, std::size_t bytes) {
  if (device().memory().is_staging(address, bytes)) return const_cast<std::byte*>(address);
  return device().memory().resolve(address, bytes);
}

int device_count() { return 2; }

void use_device_in_this_thread() { simulation::Device::use_in_this_thread(); }

Device open_device(int index) {
  if (index >= device_count())
    throw UserError(fmt::format("there is no GPU {}; the simulated CUDA has 2, counted from 0", index));
  {
    const auto lock = device().lock();
    device().set_faults(simulation::Faults::of_environment());
  }
  return {"simulated_cuda", index == 0 ? "a simulated GPU for tests" : "the second simulated GPU for tests",
          1e10, std::to_string(index)};
}

std::byte* allocate_device(std::size_t bytes) {
  auto lock = device().lock();
  device().forbid_in_capture("cudaMalloc");
  device().wait_for_flags("cudaMalloc", lock);
  device().throw_failure();
  return device().allocate(bytes);
}

void free_device(std::byte* address) noexcept {
  auto lock = device().lock();
  device().wait_for_flags("cudaFree", lock);
  device().free(address);
}

std::byte* allocate_pinned(std::size_t bytes) {
  auto lock = device().lock();
  device().forbid_in_capture("cudaMallocHost");
  device().wait_for_flags("cudaMallocHost", lock);
  device().throw_failure();
  return device().memory().allocate_staging(bytes);
}

void free_pinned(std::byte* address) noexcept {
  auto lock = device().lock();
  device().wait_for_flags("cudaFreeHost", lock);
  device().memory().free_staging(address);
}

Stream* make_stream() {
  const auto lock = device().lock();
  device().throw_failure();
  auto* const stream = new Stream;
  device().add(stream);
  return stream;
}

void destroy(Stream* stream) noexcept {
  {
    auto lock = device().lock();
    device().wait_for_flags("the memory of flags", lock);
    device().drop(stream);
  }
  delete stream;
}

void copy(Stream* stream, std::byte* dst, const std::byte* src, std::size_t bytes) {
  const auto lock = device().lock();
  device().throw_failure();
  real(dst, bytes);
  real(src, bytes);
  device().enqueue(stream, "a copy", [=] {
    device().note_use(real(src, bytes), bytes, false);
    device().note_use(real(dst, bytes), bytes, true);
    std::memmove(real(dst, bytes), real(src, bytes), bytes);
  });
}

Event* make_event() {
  const auto lock = device().lock();
  device().throw_failure();
  return new Event;
}

Event* make_awaited_event() {
  Event* const event = make_event();
  event->awaited = true;
  return event;
}

Event* make_timed_event() {
  Event* const event = make_event();
  event->timed = true;
  return event;
}

void destroy(Event* event) noexcept { delete event; }

void record(Event* event, Stream* stream) {
  const auto lock = device().lock();
  device().throw_failure();
  device().record(event->state, stream);
}

void record_in_graph(Event* event, Stream* stream) {
  const auto lock = device().lock();
  device().throw_failure();
  device().record_in_graph(event->state, stream);
}

void hold(Stream* stream, Event* event) {
  const auto lock = device().lock();
  device().throw_failure();
  device().hold(stream, event->state);
}

bool passed(const Event* event) {
  const auto lock = device().lock();
  device().throw_failure();
  device().forbid_in_capture("cudaEventQuery");
  return event->state->passed >= event->state->recorded;
}

void synchronize(Event* event) {
  auto lock = device().lock();
  if (!event->awaited)
    throw InternalError("CUDA: cudaEventSynchronize of an event without cudaEventBlockingSync would spin");
  const simulation::EventHandle state = event->state;
  device().synchronize(state, lock);
}

double seconds_between(const Event* begin, const Event* end) {
  if (!begin->timed || !end->timed || !passed(begin) || !passed(end))
    throw InternalError("CUDA: cudaEventElapsedTime of events that are not timed, or not passed");
  return end->state->time - begin->state->time;
}

void hold(Stream* stream, const Flag* flag, Flag value) {
  const auto lock = device().lock();
  device().throw_failure();
  device().hold(stream, simulation::HoldByFlag{flag, value});
}

void raise(Stream* stream, Flag* flag, Flag value) {
  const auto lock = device().lock();
  device().throw_failure();
  device().raise(stream, flag, value);
}

// No call of CUDA: the host writes to its own memory.
void raise(Flag* flag, Flag value) {
  const auto lock = device().lock();
  std::atomic_ref(*flag).store(value);
  device().flag_changed();
}

void begin_capture(Stream* stream) {
  const auto lock = device().lock();
  device().throw_failure();
  device().begin_capture(stream);
}

Graph* end_capture(Stream*) {
  const auto lock = device().lock();
  auto captured = std::make_shared<const simulation::CapturedGraph>(device().end_capture());
  device().throw_failure();
  return new Graph{std::move(captured)};
}

void drop_capture(Stream*) noexcept {
  const auto lock = device().lock();
  device().drop_capture();
}

void launch(Graph* graph, Stream* stream) {
  const auto lock = device().lock();
  device().throw_failure();
  device().launch(*graph, stream);
}

void destroy(Graph* graph) noexcept { delete graph; }

}  // namespace runtime

std::byte* place_of(const std::byte* address, std::size_t bytes) { return runtime::real(address, bytes); }

std::uint64_t times_freed() { return simulation::Device::get().times_freed; }

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

// Returns the names of a launch's operands by their addresses.
static std::map<const std::byte*, std::string> operands_of(const Call& call) {
  std::map<const std::byte*, std::string> operands{{call.workspace, "the scratch memory"},
                                                   {call.arrivals, "the counters"}};
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    operands[call.inputs[i].address] = fmt::format("input {}", i);
  for (std::size_t i = 0; i < call.outputs.size(); ++i)
    operands[call.outputs[i].address] = fmt::format("output {}", i);
  operands.erase(nullptr);
  return operands;
}

// Describes where a race was found. The kernel knows only the bytes.
static std::string text(const GlobalRace& race, const std::map<const std::byte*, std::string>& operands) {
  const std::byte* address = simulation::Device::get().memory().address_of(race.place);
  const auto behind = operands.upper_bound(address);
  if (behind == operands.begin())
    return fmt::format("{}, at {}", race.what(), static_cast<const void*>(address));
  const auto& [begin, name] = *std::prev(behind);
  return fmt::format("{}, {} bytes behind the begin of {}", race.what(), address - begin, name);
}

// Adds a line to the file that PLEXAURA_SIMULATED_CUDA_WIDTHS names, if it is set: the most elements that a
// thread of the launch has used at once, and the name of the launch.
static void report_width(const std::string& name) {
  if (const char* const file = std::getenv("PLEXAURA_SIMULATED_CUDA_WIDTHS"))
    std::ofstream(file, std::ios::app) << most_at_once << " " << name << "\n";
}

static void run_blocks(std::int64_t blocks, const std::function<void(Block& block)>& body) {
  const GlobalRaces races;
  most_at_once = 0;
  for (const std::int64_t index : simulation::Device::get().order_of_blocks(blocks)) {
    Block block(index, blocks);
    body(block);
  }
  if (simulation::Device::get().notes_uses())
    races.each_use([](const std::byte* place, std::size_t bytes, bool writes) {
      simulation::Device::get().note_use(place, bytes, writes);
    });
}

void simulate(const Call& call, std::int64_t blocks, std::size_t, std::function<void(Block& block)> body) {
  const auto lock = simulation::Device::get().lock();
  simulation::Device::get().begin_launch(call.name);
  simulation::Device::get().enqueue(
      call.stream, call.name,
      [name = call.name, blocks, operands = operands_of(call), body = std::move(body)] {
        try {
          run_blocks(blocks, body);
          report_width(name);
        } catch (const GlobalRace& race) {
          throw DeviceError(fmt::format("{}: {}", name, text(race, operands)));
        } catch (const std::exception& error) {
          throw DeviceError(fmt::format("{}: {}", name, error.what()));
        }
      });
}

}  // namespace plexaura::cuda
