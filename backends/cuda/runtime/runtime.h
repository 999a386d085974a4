#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// All that the plugin asks of CUDA's runtime, so that it can run without a GPU: the tests have a simulation of
// these functions. A function that fails throws DeviceError with CUDA's words, unless a comment says otherwise. Only
// make_event(), record(), passed(), synchronize() and raise() may be called from any thread.

namespace plexaura::cuda::runtime {

struct Stream;
struct Event;
struct Graph;
using Flag = std::uint32_t;  // in pinned memory: host and device read and write it

struct Device {
  std::string name;          // of the backend: "cuda"
  std::string description;   // "NVIDIA H200, compute capability 9.0, CUDA 13.0"
  double bytes_in_a_second;  // what its memory reads and writes
  std::string identity;      // among those of the machine, the same for all processes: its PCI bus id
};

// UserError in one sentence where there is no driver or no GPU.
int device_count();
// UserError in one sentence where there is no such GPU, or it is too old.
Device open_device(int index);

std::byte* allocate_device(std::size_t bytes);  // says what was asked and what there is
void free_device(std::byte* address) noexcept;
std::byte* allocate_pinned(std::size_t bytes);
void free_pinned(std::byte* address) noexcept;

Stream* make_stream();
void destroy(Stream* stream) noexcept;
void copy(Stream* stream, std::byte* dst, const std::byte* src, std::size_t bytes);

Event* make_event();
Event* make_awaited_event();  // for synchronize(), which then leaves the core to others
Event* make_timed_event();
void destroy(Event* event) noexcept;
// While the stream is captured: a mark for hold() in the same capture.
void record(Event* event, Stream* stream);
// While the stream is captured: a part of the graph, so that each launch records the event anew.
void record_in_graph(Event* event, Stream* stream);
// What enters the stream from now on starts after what was recorded last.
void hold(Stream* stream, Event* event);
bool passed(const Event* event);
void synchronize(Event* event);                                // of make_awaited_event()
double seconds_between(const Event* begin, const Event* end);  // timed ones, both passed

// What enters the stream from now on starts when the flag has reached the value.
void hold(Stream* stream, const Flag* flag, Flag value);
void raise(Stream* stream, Flag* flag, Flag value);  // when all that stands in the stream is done
void raise(Flag* flag, Flag value);                  // now, by the host

// Between the two, what enters the stream becomes a part of the graph, and so does what enters another stream once
// that is held by an event that was recorded in between. These must be joined before the end.
void begin_capture(Stream* stream);
Graph* end_capture(Stream* stream);
void drop_capture(Stream* stream) noexcept;  // of a body that failed
void launch(Graph* graph, Stream* stream);
void destroy(Graph* graph) noexcept;

}  // namespace plexaura::cuda::runtime
