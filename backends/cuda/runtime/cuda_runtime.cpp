// The functions of runtime.h, implemented by CUDA's runtime. The driver is not linked. Functions that only
// the driver has are looked up when they are first needed, so that the plugin can be opened on a machine
// without a GPU, and reports what is missing.

#include <array>
#include <atomic>
#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <string>

#include "backends/cuda/runtime/launch_check.h"
#include "backends/cuda/runtime/out_of_memory.h"
#include "backends/cuda/runtime/runtime.h"
#include "backends/cuda/runtime/short_wait.h"
#include "backends/cuda/runtime/thread_device.h"
#include "core/base/clock.h"
#include "core/base/error.h"

namespace plexaura::cuda {

namespace {

// Clears the runtime's last error of this thread. Otherwise the check after the next launch would report it
// again.
void forget_error() { cudaGetLastError(); }

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  forget_error();
  throw DeviceError(fmt::format("CUDA: {} failed: {}", call, cudaGetErrorString(result)));
}

// Ignores the result of a call that releases something: a failure that matters also shows in all later calls.
void ignore(cudaError_t result) {
  if (result != cudaSuccess) forget_error();
}

cudaStream_t stream_of(runtime::Stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(const runtime::Event* event) {
  return reinterpret_cast<cudaEvent_t>(const_cast<runtime::Event*>(event));
}
cudaGraphExec_t graph_of(runtime::Graph* graph) { return reinterpret_cast<cudaGraphExec_t>(graph); }

// Returns a function of the driver. Throws DeviceError if the driver lacks it.
template <class Function>
Function* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned version = 12000;
  check(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found), name);
  if (function == nullptr || found != cudaDriverEntryPointSuccess)
    throw DeviceError(fmt::format("CUDA: the driver has no function {}; install a newer driver", name));
  return reinterpret_cast<Function*>(function);
}

void check_driver(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw DeviceError(
        fmt::format("CUDA: {} failed with the driver's error {}", call, static_cast<int>(result)));
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

void require_driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) {
    forget_error();
    throw UserError(
        "the backend 'cuda' needs NVIDIA's driver, and this machine does not have its library libcuda.so.1; "
        "install the driver, or use the backend 'cpu'");
  }
  if (version / 1000 < CUDART_VERSION / 1000)
    throw UserError(fmt::format(
        "the backend 'cuda' was built with CUDA {}, and the driver of this machine knows {} at most; "
        "install a newer driver, or use the backend 'cpu'",
        version_text(CUDART_VERSION), version_text(version)));
}

void require_capability(const cudaDeviceProp& properties, int index) {
  constexpr int oldest = PLEXAURA_CUDA_OLDEST;
  if (10 * properties.major + properties.minor < oldest)
    throw UserError(
        fmt::format("GPU {} ({}) has compute capability {}.{}, and the backend 'cuda' was built for {}.{} "
                    "and later; name that one in PLEXAURA_CUDA_ARCHITECTURES, or use the backend 'cpu'",
                    index, properties.name, properties.major, properties.minor, oldest / 10, oldest % 10));
}

std::string pci_bus_id(int index) {
  std::array<char, 32> text{};
  check(cudaDeviceGetPCIBusId(text.data(), text.size(), index), "cudaDeviceGetPCIBusId");
  return text.data();
}

std::atomic<int> opened_device = 0;

// Sets the device of the calling thread, if it is not the opened one. Each thread has a current device, which
// is number 0 at first. Calls of other threads would use that device, or make events that the streams of the
// opened device refuse.
void use_opened_device() {
  thread_local int used = -1;
  const int wanted = opened_device.load();
  if (used == wanted) return;
  check(cudaSetDevice(wanted), "cudaSetDevice");
  used = wanted;
}

using OnFlag = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned);

}  // namespace

void check_launch(const std::string& name) {
  if (const cudaError_t result = cudaGetLastError(); result != cudaSuccess)
    throw DeviceError(fmt::format("{}: CUDA: {}", name, cudaGetErrorString(result)));
}

namespace runtime {

int device_count() {
  require_driver();
  int devices = 0;
  cudaError_t result = cudaGetDeviceCount(&devices);
  if (result == cudaSuccess && devices == 0) result = cudaErrorNoDevice;
  if (result == cudaSuccess) return devices;
  forget_error();
  throw UserError(fmt::format("the backend 'cuda' finds no GPU that it can use ({}); use the backend 'cpu'",
                              cudaGetErrorString(result)));
}

Device open_device(int index) {
  if (const int devices = device_count(); index >= devices)
    throw UserError(fmt::format("there is no GPU {}; this machine has {}, counted from 0", index, devices));
  opened_device = index;
  use_opened_device();
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  require_capability(properties, index);
  int clock = 0;  // clock rate in kHz
  check(cudaDeviceGetAttribute(&clock, cudaDevAttrMemoryClockRate, index), "cudaDeviceGetAttribute");
  constexpr double transfers_in_a_clock = 2;
  const double bytes_in_a_second = transfers_in_a_clock * 1e3 * clock * properties.memoryBusWidth / 8;
  return {"cuda",
          fmt::format("{}, compute capability {}.{}, CUDA {}", properties.name, properties.major,
                      properties.minor, version_text(CUDART_VERSION)),
          bytes_in_a_second > 0 ? bytes_in_a_second : 1e12, pci_bus_id(index)};
}

void use_device_in_this_thread() { use_opened_device(); }

std::byte* allocate_device(std::size_t bytes) {
  use_opened_device();
  void* address = nullptr;
  const cudaError_t result = cudaMalloc(&address, bytes);
  if (result != cudaErrorMemoryAllocation) {
    check(result, "cudaMalloc");
    return static_cast<std::byte*>(address);
  }
  forget_error();
  std::size_t available = 0;
  std::size_t all = 0;
  check(cudaMemGetInfo(&available, &all), "cudaMemGetInfo");
  throw OutOfMemoryError<DeviceError>(out_of_memory_text(bytes, available, all));
}

void free_device(std::byte* address) noexcept { ignore(cudaFree(address)); }

std::byte* allocate_pinned(std::size_t bytes) {
  use_opened_device();
  void* address = nullptr;
  check(cudaMallocHost(&address, bytes), "cudaMallocHost");
  return static_cast<std::byte*>(address);
}

void free_pinned(std::byte* address) noexcept { ignore(cudaFreeHost(address)); }

Stream* make_stream() {
  use_opened_device();
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return reinterpret_cast<Stream*>(stream);
}

void destroy(Stream* stream) noexcept { ignore(cudaStreamDestroy(stream_of(stream))); }

void copy(Stream* stream, std::byte* dst, const std::byte* src, std::size_t bytes) {
  use_opened_device();
  check(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream_of(stream)), "cudaMemcpyAsync");
}

static Event* make_event(unsigned flags) {
  use_opened_device();
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return reinterpret_cast<Event*>(event);
}

Event* make_event() { return make_event(cudaEventDisableTiming); }
Event* make_awaited_event() { return make_event(cudaEventDisableTiming | cudaEventBlockingSync); }
Event* make_timed_event() { return make_event(cudaEventDefault); }

void destroy(Event* event) noexcept { ignore(cudaEventDestroy(event_of(event))); }

void record(Event* event, Stream* stream) {
  use_opened_device();
  check(cudaEventRecord(event_of(event), stream_of(stream)), "cudaEventRecord");
}

void record_in_graph(Event* event, Stream* stream) {
  use_opened_device();
  check(cudaEventRecordWithFlags(event_of(event), stream_of(stream), cudaEventRecordExternal),
        "cudaEventRecordWithFlags");
}

void hold(Stream* stream, Event* event) {
  use_opened_device();
  check(cudaStreamWaitEvent(stream_of(stream), event_of(event), cudaEventWaitDefault), "cudaStreamWaitEvent");
}

bool passed(const Event* event) {
  use_opened_device();
  const cudaError_t result = cudaEventQuery(event_of(event));
  if (result == cudaErrorNotReady) {
    forget_error();
    return false;
  }
  check(result, "cudaEventQuery");
  return true;
}

// The time that a thread polls before it sleeps. The wake-up by an interrupt takes about as long as a small
// step.
static constexpr double seconds_before_sleep = 50e-6;

void synchronize(Event* event) {
  if (passes_within(
          seconds_before_sleep, [event] { return passed(event); }, seconds_now))
    return;
  check(cudaEventSynchronize(event_of(event)), "cudaEventSynchronize");
}

double seconds_between(const Event* begin, const Event* end) {
  use_opened_device();
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, event_of(begin), event_of(end)), "cudaEventElapsedTime");
  return 1e-3 * milliseconds;
}

void hold(Stream* stream, const Flag* flag, Flag value) {
  use_opened_device();
  static OnFlag* const wait = driver_function<OnFlag>("cuStreamWaitValue32");
  check_driver(wait(stream_of(stream), reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WAIT_VALUE_GEQ),
               "cuStreamWaitValue32");
}

void raise(Stream* stream, Flag* flag, Flag value) {
  use_opened_device();
  static OnFlag* const write = driver_function<OnFlag>("cuStreamWriteValue32");
  check_driver(
      write(stream_of(stream), reinterpret_cast<CUdeviceptr>(flag), value, CU_STREAM_WRITE_VALUE_DEFAULT),
      "cuStreamWriteValue32");
}

void raise(Flag* flag, Flag value) { std::atomic_ref(*flag).store(value); }

void begin_capture(Stream* stream) {
  use_opened_device();
  check(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
}

Graph* end_capture(Stream* stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_of(stream), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t ready = nullptr;
  const cudaError_t result = cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphDestroy(graph);
  check(result, "cudaGraphInstantiate");
  return reinterpret_cast<Graph*>(ready);
}

void drop_capture(Stream* stream) noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream_of(stream), &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
  forget_error();
}

void launch(Graph* graph, Stream* stream) {
  use_opened_device();
  check(cudaGraphLaunch(graph_of(graph), stream_of(stream)), "cudaGraphLaunch");
}

void destroy(Graph* graph) noexcept { ignore(cudaGraphExecDestroy(graph_of(graph))); }

}  // namespace runtime

}  // namespace plexaura::cuda
