#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <string>

#include "backends/cpu/host_event.h"
#include "backends/cpu/host_memory.h"
#include "backends/cpu/kernel_cache.h"
#include "backends/cpu/kernel_code.h"
#include "backends/cpu/threads.h"
#include "core/host/costs.h"
#include "core/host/host_adapter.h"
#include "core/loops/denormals.h"

namespace plexaura {

namespace {

// Runs a kernel after the events that hold its stream, with the kernel's treatment of denormals. Restores the
// treatment of the calling thread afterwards.
class CpuLaunch final : public Launch {
 public:
  CpuLaunch(std::shared_ptr<HostStreams> streams, Denormals denormals, std::unique_ptr<Launch> launch)
      : streams_(std::move(streams)), denormals_(denormals), launch_(std::move(launch)) {}

  void run() override {
    streams_->drain(Stream::compute);
    const DenormalScope of_kernel(denormals_);
    if (denormals_ == Denormals::flushed) flush_in_workers();
    launch_->run();
  }

 private:
  std::shared_ptr<HostStreams> streams_;
  Denormals denormals_;
  std::unique_ptr<Launch> launch_;
};

class CpuKernel final : public Kernel {
 public:
  CpuKernel(std::shared_ptr<HostStreams> streams, Denormals denormals, std::shared_ptr<const Kernel> kernel)
      : streams_(std::move(streams)), denormals_(denormals), kernel_(std::move(kernel)) {}

  std::size_t workspace() const override { return kernel_->workspace(); }
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<CpuLaunch>(streams_, denormals_, kernel_->bind(binding));
  }

 private:
  std::shared_ptr<HostStreams> streams_;
  Denormals denormals_;
  std::shared_ptr<const Kernel> kernel_;
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
              fmt::format("{}, {}", processor(), libraries),
              true,
              fmt::format("{}, {}, {}", instructions, thread_text(), processor()),
              costs::bytes_of_reorders,
              kernel_code_stamp()},
        sources_(std::move(sources)) {}

  const BackendInfo& info() const override { return info_; }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse) override {
    return std::make_unique<HostMemory>(bytes);
  }

  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    streams_->drain(stream);
    if (bytes > 0) std::memcpy(dst, src, bytes);
  }

  std::unique_ptr<Event> make_event() override { return std::make_unique<HostEvent>(streams_); }

  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::vector<Region> all;
    for (const auto& source : sources_)
      for (Region& region : source->match(graph, last, uses)) all.push_back(std::move(region));
    return all;
  }

  std::vector<Repeat> repeats(const Graph& graph, NodeId last, const Uses& uses) const override {
    std::vector<Repeat> all;
    for (const auto& source : sources_)
      for (Repeat& repeat : source->repeats(graph, last, uses)) all.push_back(std::move(repeat));
    return all;
  }

  // Returns all candidates of the sources. If none of them has an estimate and the region is a single node,
  // adds the reference kernel of its op.
  std::vector<Candidate> propose(const RegionQuery& query) const override {
    std::vector<Candidate> all;
    const auto add = [&](std::vector<Candidate> offers, Denormals denormals) {
      for (Candidate& candidate : offers) {
        candidate.make = made_once(query, candidate, denormals);
        all.push_back(std::move(candidate));
      }
    };
    for (const auto& source : sources_) add(source->propose(query), source->denormals());
    if (std::ranges::none_of(all, &Candidate::has_estimate) && query.region.nodes.size() == 1)
      add(propose_host_kernel(query), Denormals::kept);
    return all;
  }

 private:
  std::function<std::shared_ptr<const Kernel>()> made_once(const RegionQuery& query,
                                                           const Candidate& candidate,
                                                           Denormals denormals) const {
    return [cache = cache_, streams = streams_, query, candidate, denormals] {
      return cache->get(query, candidate, [&] {
        return std::make_shared<const CpuKernel>(streams, denormals, candidate.make());
      });
    };
  }

  BackendInfo info_;
  std::shared_ptr<HostStreams> streams_ = std::make_shared<HostStreams>();
  std::vector<std::unique_ptr<const KernelSource>> sources_;
  std::shared_ptr<KernelCache> cache_ = std::make_shared<KernelCache>();
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
