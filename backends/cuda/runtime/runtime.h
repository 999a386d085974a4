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
using Flag = std::uint32_t;  // a flag in pinned memory, which host and device read and write

struct Device {
  std::string name;          // name of the backend, such as "cuda"
  std::string description;   // such as "NVIDIA H200, compute capability 9.0, CUDA 13.0"
  double bytes_in_a_second;  // bytes of its memory that it reads or writes per second
  std::string identity;      // PCI bus id of the device, which is the same for all processes of the machine
};

// Returns the number of GPUs. Throws UserError if there is no driver or no GPU.
int device_count();
// Opens a GPU. Throws UserError if it does not exist, or if it is too old.
Device open_device(int index);

// Allocates device memory. Throws OutOfMemoryError, which says how many bytes were requested and how many are
// left.
std::byte* allocate_device(std::size_t bytes);
void free_device(std::byte* address) noexcept;
std::byte* allocate_pinned(std::size_t bytes);
void free_pinned(std::byte* address) noexcept;

Stream* make_stream();
void destroy(Stream* stream) noexcept;
void copy(Stream* stream, std::byte* dst, const std::byte* src, std::size_t bytes);

Event* make_event();
Event* make_awaited_event();  // makes an event for synchronize(), which then frees the core while it waits
Event* make_timed_event();
void destroy(Event* event) noexcept;
// Records the event in the stream. While the stream is captured, it marks a place for hold() in the same
// capture instead.
void record(Event* event, Stream* stream);
// Adds a record of the event to the graph while the stream is captured, so that each launch of the graph
// records it again.
void record_in_graph(Event* event, Stream* stream);
// Lets work that enters the stream from now on start after the work that the event has last recorded.
void hold(Stream* stream, Event* event);
bool passed(const Event* event);
void synchronize(Event* event);  // waits for an event of make_awaited_event()
// Seconds between timed events that have passed.
double seconds_between(const Event* begin, const Event* end);

// Lets work that enters the stream from now on start when the flag has reached the value.
void hold(Stream* stream, const Flag* flag, Flag value);
// Raises the flag after all work that is in the stream now.
void raise(Stream* stream, Flag* flag, Flag value);
void raise(Flag* flag, Flag value);  // raises the flag at once, on behalf of the host

// Begins a capture. Until the capture ends, work that enters the stream becomes a part of the graph. So does
// work on another stream, once an event that was recorded during the capture holds that stream. The other
// stream must be joined before the end.
void begin_capture(Stream* stream);
Graph* end_capture(Stream* stream);
void drop_capture(Stream* stream) noexcept;  // ends a capture whose body has failed
void launch(Graph* graph, Stream* stream);
void destroy(Graph* graph) noexcept;

}  // namespace plexaura::cuda::runtime
