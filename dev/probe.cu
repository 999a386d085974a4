// Tests the plugin's assumptions about CUDA and a card, one line for each. Needs only the toolkit:
//   nvcc -arch=native -std=c++20 -o probe dev/probe.cu && ./probe
// Exit status: 0 if everything that the plugin needs holds, 1 if something does not, 2 without a GPU.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void fill(float* to, float value, long count) {
  const long at = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (at < count) to[at] = value;
}

__global__ void first_in_capture(float* to) { to[threadIdx.x] = 7; }

// Keeps one block busy for approximately this many nanoseconds.
__global__ void busy(long nanoseconds) {
  long begin = 0;
  long at = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(at));
  while (at - begin < nanoseconds);
}

__global__ void wait_for(volatile unsigned* flag, unsigned value) {
  while (*flag != value) {
  }
}

__global__ void raise(volatile unsigned* flag, unsigned value) {
  __threadfence_system();
  *flag = value;
}

struct Large {
  char bytes[15 << 10];
};

__global__ void read_large(const __grid_constant__ Large large, char* to) {
  *to = large.bytes[(15 << 10) - 1];
}

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_{};
};

// Captures the calls of `work` on the stream as a graph.
cudaGraphExec_t captured(cudaStream_t stream, const std::function<void()>& work) {
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  work();
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphDestroy(graph));
  return exec;
}

template <class T>
T* device_memory(std::size_t count) {
  void* at = nullptr;
  check(cudaMalloc(&at, count * sizeof(T)));
  return static_cast<T*>(at);
}

unsigned* mapped_flag() {
  void* at = nullptr;
  check(cudaHostAlloc(&at, sizeof(unsigned), cudaHostAllocMapped));
  *static_cast<volatile unsigned*>(at) = 0;
  return static_cast<unsigned*>(at);
}

std::string text(const char* form, double value) {
  char line[128];
  std::snprintf(line, sizeof line, form, value);
  return line;
}

// Tests that another stream can wait for an event recorded by a graph, over many launches.
std::string event_in_graph() {
  const Stream stream, other;
  cudaEvent_t inside{};
  check(cudaEventCreateWithFlags(&inside, cudaEventDisableTiming));
  float* value = device_memory<float>(2);
  const cudaGraphExec_t graph = captured(stream, [&] {
    busy<<<1, 1, 0, stream>>>(200'000);
    fill<<<1, 1, 0, stream>>>(value, 1, 1);
    check(cudaEventRecordWithFlags(inside, stream, cudaEventRecordExternal));
  });
  int early = 0;
  for (int launch = 0; launch < 100; ++launch) {
    check(cudaMemsetAsync(value, 0, 2 * sizeof(float), stream));
    stream.wait();
    check(cudaGraphLaunch(graph, stream));
    early += cudaEventQuery(inside) == cudaErrorNotReady;
    check(cudaStreamWaitEvent(other, inside, 0));
    check(cudaMemcpyAsync(value + 1, value, sizeof(float), cudaMemcpyDeviceToDevice, other));
    other.wait();
    float seen = 0;
    check(cudaMemcpy(&seen, value + 1, sizeof seen, cudaMemcpyDeviceToHost));
    if (seen != 1)
      throw std::runtime_error("a stream that waited for the event of launch " + std::to_string(launch) +
                               " came too early");
    stream.wait();
  }
  return std::to_string(early) + " of 100 launches had the event open right behind the launch";
}

// Tests that a kernel can wait for a flag from the host, and raise one that the host sees.
std::string flags() {
  const Stream stream;
  unsigned* to_device = mapped_flag();
  unsigned* to_host = mapped_flag();
  wait_for<<<1, 1, 0, stream>>>(to_device, 1);
  raise<<<1, 1, 0, stream>>>(to_host, 1);
  check(cudaGetLastError());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (*static_cast<volatile unsigned*>(to_host) != 0)
    throw std::runtime_error("the kernel did not wait for the flag of the host");
  const double begin = now();
  *static_cast<volatile unsigned*>(to_device) = 1;
  while (*static_cast<volatile unsigned*>(to_host) != 1)
    if (now() - begin > 5) throw std::runtime_error("the host does not see the flag of a kernel");
  const double seconds = now() - begin;
  stream.wait();
  return text("there and back in %.1f microseconds", seconds * 1e6);
}

// Tests that a kernel whose code is not loaded yet can be launched for the first time during a capture.
std::string first_launch_in_capture() {
  const Stream stream;
  float* value = device_memory<float>(32);
  const cudaGraphExec_t graph = captured(stream, [&] {
    first_in_capture<<<1, 32, 0, stream>>>(value);
    check(cudaGetLastError());
  });
  check(cudaGraphLaunch(graph, stream));
  stream.wait();
  return "is captured";
}

// Reports whether a copy of pageable memory can be captured. The plugin makes no such copy, so either answer
// is good.
std::string pageable_copy_in_capture() {
  const Stream stream;
  std::vector<float> host(1024, 1);
  float* value = device_memory<float>(1024);
  cudaGraph_t graph{};
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const cudaError_t copied = cudaMemcpyAsync(value, host.data(), 4096, cudaMemcpyHostToDevice, stream);
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();
  return copied == cudaSuccess && ended == cudaSuccess
             ? "is captured"
             : std::string("is refused: ") + cudaGetErrorString(copied);
}

double seconds_of(cudaGraphExec_t graph, const Stream& stream) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double begin = now();
    check(cudaGraphLaunch(graph, stream));
    stream.wait();
    least = std::min(least, now() - begin);
  }
  return least;
}

// Tests that two kernels of one block each, on two branches of a graph, take as long as one.
std::string two_branches() {
  const Stream stream, branch;
  cudaEvent_t fork{}, join{};
  check(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  check(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  const cudaGraphExec_t apart = captured(stream, [&] {
    check(cudaEventRecord(fork, stream));
    check(cudaStreamWaitEvent(branch, fork, 0));
    busy<<<1, 1, 0, stream>>>(500'000);
    busy<<<1, 1, 0, branch>>>(500'000);
    check(cudaEventRecord(join, branch));
    check(cudaStreamWaitEvent(stream, join, 0));
  });
  const cudaGraphExec_t in_turn = captured(stream, [&] {
    busy<<<1, 1, 0, stream>>>(500'000);
    busy<<<1, 1, 0, stream>>>(500'000);
  });
  const double share = seconds_of(apart, stream) / seconds_of(in_turn, stream);
  if (share > 0.8) throw std::runtime_error(text("take %.2f of the time of one behind the other", share));
  return text("take %.2f of the time of one behind the other", share);
}

std::string large_parameter() {
  const Stream stream;
  Large large{};
  large.bytes[(15 << 10) - 1] = 42;
  char* value = device_memory<char>(1);
  read_large<<<1, 1, 0, stream>>>(large, value);
  check(cudaGetLastError());
  stream.wait();
  char seen = 0;
  check(cudaMemcpy(&seen, value, 1, cudaMemcpyDeviceToHost));
  if (seen != 42) throw std::runtime_error("15 KiB of parameters arrive damaged");
  return "15 KiB arrive";
}

// Reports whether an allocation waits for a stream that a kernel keeps busy.
std::string allocation_beside_work() {
  const Stream stream;
  unsigned* flag = mapped_flag();
  wait_for<<<1, 1, 0, stream>>>(flag, 1);
  check(cudaGetLastError());
  std::atomic<bool> done{false};
  std::thread thread([&] {
    void* at = nullptr;
    cudaMalloc(&at, 64 << 20);
    done = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const bool waits = !done;
  *static_cast<volatile unsigned*>(flag) = 1;
  thread.join();
  stream.wait();
  return waits ? "waits for it" : "does not wait for it";
}

double copy_rate(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, double moved) {
  const Stream stream;
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    const double begin = now();
    check(cudaMemcpyAsync(to, from, bytes, kind, stream));
    stream.wait();
    least = std::min(least, now() - begin);
  }
  return moved * static_cast<double>(bytes) / least / 1e9;
}

std::string bandwidth() {
  const std::size_t bytes = std::size_t{1} << 30;
  char* one = device_memory<char>(bytes);
  char* two = device_memory<char>(bytes);
  void* host = nullptr;
  check(cudaHostAlloc(&host, bytes, 0));
  const double inside = copy_rate(two, one, bytes, cudaMemcpyDeviceToDevice, 2);
  const double in = copy_rate(one, host, bytes, cudaMemcpyHostToDevice, 1);
  const double out = copy_rate(host, one, bytes, cudaMemcpyDeviceToHost, 1);
  return text("%.0f GB/s read and written within the card", inside) + text(", %.1f from pinned memory", in) +
         text(" and %.1f to it", out);
}

// Reports how long the host takes to notice that a kernel has ended.
std::string cost_of_waits() {
  const Stream stream;
  const auto median = [&](unsigned how) {
    cudaEvent_t event{};
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | how));
    std::vector<double> seconds;
    for (int i = 0; i < 51; ++i) {
      const double begin = now();
      busy<<<1, 1, 0, stream>>>(100'000);
      check(cudaEventRecord(event, stream));
      check(cudaEventSynchronize(event));
      seconds.push_back(now() - begin);
    }
    std::nth_element(seconds.begin(), seconds.begin() + 25, seconds.end());
    return (seconds[25] - 100e-6) * 1e6;
  };
  return text("%.1f microseconds beyond the kernel by spinning", median(0)) +
         text(", %.1f by blocking", median(cudaEventBlockingSync));
}

struct Question {
  const char* name;
  std::string (*ask)();
};

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("probe: CUDA finds no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 2;
  }
  cudaDeviceProp card{};
  check(cudaGetDeviceProperties(&card, 0));
  std::printf(
      "card: %s, compute capability %d.%d, %d multiprocessors, L2 %d MiB, shared memory of a block %zu KiB\n",
      card.name, card.major, card.minor, card.multiProcessorCount, card.l2CacheSize >> 20,
      card.sharedMemPerBlockOptin >> 10);
  const Question questions[] = {{"an event within a graph", event_in_graph},
                                {"flags between host and kernels", flags},
                                {"the first launch of a kernel within a capture", first_launch_in_capture},
                                {"a copy of pageable memory within a capture", pageable_copy_in_capture},
                                {"two branches of a graph", two_branches},
                                {"large parameters of a kernel", large_parameter},
                                {"an allocation beside a stream that is held", allocation_beside_work},
                                {"bandwidth", bandwidth},
                                {"waits", cost_of_waits}};
  bool well = true;
  for (const Question& question : questions) try {
      std::printf("%s: %s\n", question.name, question.ask().c_str());
      std::fflush(stdout);
    } catch (const std::exception& error) {
      std::printf("%s: FAILED, %s\n", question.name, error.what());
      std::fflush(stdout);
      well = false;
    }
  return well ? 0 : 1;
}
