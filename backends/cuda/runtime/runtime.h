#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// All functions of CUDA's runtime that the plugin uses. The tests have a simulation of them, so that the
// plugin also runs without a GPU. A function that fails throws DeviceError with CUDA's message, unless a
// comment says otherwise. Only make_event(), record(), passed(), synchronize() and raise() may be called from
// any thread.

namespace plexaura::cuda::runtime {

struct Stream;
struct Event;
struct Graph;
using Flag = std::uint32_t;  // in pinned memory: host and device read and write it

struct Device {
  std::string name;          // name of the backend: "cuda"
  std::string description;   // "NVIDIA H200, compute capability 9.0, CUDA 13.0"
  double bytes_in_a_second;  // speed of its memory, reads and writes
  std::string identity;      // its PCI bus id, which is the same for all processes of the machine
};

// Throws UserError if there is no driver or no GPU.
int device_count();
// Throws UserError if there is no such GPU, or if it is too old.
Device open_device(int index);

// Throws OutOfMemoryError, which says how many bytes were requested and how many are left.
std::byte* allocate_device(std::size_t bytes);
void free_device(std::byte* address) noexcept;
std::byte* allocate_pinned(std::size_t bytes);
void free_pinned(std::byte* address) noexcept;

Stream* make_stream();
void destroy(Stream* stream) noexcept;
void copy(Stream* stream, std::byte* dst, const std::byte* src, std::size_t bytes);

Event* make_event();
Event* make_awaited_event();  // for synchronize(), which then frees the core while it waits
Event* make_timed_event();
void destroy(Event* event) noexcept;
// While the stream is captured, this marks a place for hold() in the same capture.
void record(Event* event, Stream* stream);
// While the stream is captured, this becomes a part of the graph, so that each launch records the event
// again.
void record_in_graph(Event* event, Stream* stream);
// Work that enters the stream from now on starts after the work that the event has last recorded.
void hold(Stream* stream, Event* event);
bool passed(const Event* event);
void synchronize(Event* event);                                // takes an event of make_awaited_event()
double seconds_between(const Event* begin, const Event* end);  // of timed events that have passed

// Work that enters the stream from now on starts when the flag has reached the value.
void hold(Stream* stream, const Flag* flag, Flag value);
void raise(Stream* stream, Flag* flag, Flag value);  // after all work that is in the stream now
void raise(Flag* flag, Flag value);                  // at once, by the host

// Between begin and end, work that enters the stream becomes a part of the graph. So does work on another
// stream, once that stream is held by an event that was recorded in between. The other stream must be joined
// before the end.
void begin_capture(Stream* stream);
Graph* end_capture(Stream* stream);
void drop_capture(Stream* stream) noexcept;  // after the captured body failed
void launch(Graph* graph, Stream* stream);
void destroy(Graph* graph) noexcept;

}  // namespace plexaura::cuda::runtime
