#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <thread>

#include "backends/cpu/adapter/host_adapter.h"
#include "backends/cpu/denormals.h"
#include "backends/cpu/host_event.h"
#include "backends/cpu/host_memory.h"
#include "backends/cpu/kernel_cache.h"
#include "backends/cpu/portable/portable.h"
#include "backends/cpu/threads.h"

namespace plexaura {

namespace {

constexpr int bits_for_source = 6;

// What every launch on the CPU does first: waits for what holds its stream, and flushes denormals.
class CpuLaunch final : public Launch {
 public:
  CpuLaunch(std::shared_ptr<HostStreams> streams, std::unique_ptr<Launch> launch)
      : streams_(std::move(streams)), launch_(std::move(launch)) {}

  void run() override {
    streams_->settle(Stream::compute);
    flush_denormals();
    launch_->run();
  }

 private:
  std::shared_ptr<HostStreams> streams_;
  std::unique_ptr<Launch> launch_;
};

class CpuKernel final : public Kernel {
 public:
  CpuKernel(std::shared_ptr<HostStreams> streams, std::shared_ptr<const Kernel> kernel)
      : streams_(std::move(streams)), kernel_(std::move(kernel)) {}

  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<CpuLaunch>(streams_, kernel_->bind(binding));
  }

 private:
  std::shared_ptr<HostStreams> streams_;
  std::shared_ptr<const Kernel> kernel_;
};

// The last source: offers what has a host kernel.
class PortableSource final : public KernelSource {
 public:
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    return propose_host_kernel(query);
  }
  std::shared_ptr<const Kernel> make(const RegionQuery& query, const Candidate& candidate) const override {
    return make_host_kernel(query, candidate);
  }
};

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::string thread_text() {
  const int threads = threads_in_use();
  return threads == 1 ? "1 thread" : fmt::format("{} threads", threads);
}

class CpuBackend final : public Backend {
 public:
  CpuBackend(std::string name, const std::string& libraries, const std::string& instructions,
             std::vector<std::unique_ptr<const KernelSource>> sources)
      : info_{std::move(name),
              fmt::format("{}, {} hardware threads, {}", processor(), std::thread::hardware_concurrency(),
                          libraries),
              true, fmt::format("{}, {}, {}", instructions, thread_text(), processor())},
        sources_(std::move(sources)) {
    register_portable_kernels();
    flush_denormals();
    sources_.push_back(std::make_unique<PortableSource>());
  }

  const BackendInfo& info() const override { return info_; }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse) override {
    return std::make_unique<HostMemory>(bytes);
  }

  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    streams_->settle(stream);
    if (bytes > 0) std::memcpy(dst, src, bytes);
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(streams_); }

  std::unique_ptr<Recording> record(const std::function<void()>&) override { return nullptr; }

  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::vector<Region> all;
    for (const auto& source : sources_)
      for (Region& region : source->match(graph, last, uses)) all.push_back(std::move(region));
    std::ranges::stable_sort(all, std::ranges::greater{},
                             [](const Region& region) { return region.nodes.size(); });
    return all;
  }

  // All that the sources offer; the portable kernels only where they offer nothing.
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> all;
    for (std::size_t source = 0; source < sources_.size(); ++source) {
      const bool is_last_resort = source + 1 == sources_.size();
      if (is_last_resort && !all.empty()) break;
      for (Candidate& candidate : sources_[source]->propose(query)) {
        candidate.choice = (candidate.choice << bits_for_source) | static_cast<int>(source);
        all.push_back(std::move(candidate));
      }
    }
    return all;
  }

  std::shared_ptr<const Kernel> make(const RegionQuery& query, const Candidate& candidate) override {
    return cache_.get(query, candidate, [&] {
      const auto source = static_cast<std::size_t>(candidate.choice & ((1 << bits_for_source) - 1));
      Candidate own = candidate;
      own.choice >>= bits_for_source;
      return std::make_shared<const CpuKernel>(streams_, sources_[source]->make(query, own));
    });
  }

 private:
  BackendInfo info_;
  std::shared_ptr<HostStreams> streams_ = std::make_shared<HostStreams>();
  std::vector<std::unique_ptr<const KernelSource>> sources_;
  KernelCache cache_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() {
  return std::make_unique<CpuBackend>("cpu", cpu_libraries(), cpu_instructions(), cpu_kernel_sources());
}

std::unique_ptr<Backend> make_portable_backend() {
  return std::make_unique<CpuBackend>("portable", "portable kernels", "portable kernels",
                                      std::vector<std::unique_ptr<const KernelSource>>{});
}

}  // namespace plexaura
