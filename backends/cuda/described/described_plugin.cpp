// The plugin for a GPU that need not be present. It has the options of the CUDA plugin, and one more:
//   describe  the GPU, for example h200

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/described/described_runtime.h"
#include "core/device/plugin.h"

namespace plexaura::cuda {

namespace {

class DescribedCuda final : public DescribedBackend {
 public:
  explicit DescribedCuda(std::unique_ptr<Backend> cuda) : cuda_(std::move(cuda)) {}

  const BackendInfo& info() const override { return cuda_->info(); }
  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    return cuda_->allocate(bytes, use);
  }
  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    cuda_->copy(stream, dst, src, bytes);
  }
  std::unique_ptr<Event> make_event() override { return cuda_->make_event(); }
  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    return cuda_->record(body);
  }
  std::vector<Region> regions(const Graph& graph, NodeId last, const Uses& uses) const override {
    return cuda_->regions(graph, last, uses);
  }
  std::vector<Candidate> propose(const RegionQuery& query) const override { return cuda_->propose(query); }

  std::string speeds() const override { return speeds_of(described::described_gpu()); }
  std::size_t memory_bytes() const override {
    return static_cast<std::size_t>(described::described_gpu().memory);
  }
  std::size_t most_bytes_used() const override { return described::most_bytes_used(); }
  void begin_account() override { described::begin_account(); }
  WorkAccount end_account() override { return described::end_account(); }

 private:
  std::unique_ptr<Backend> cuda_;
};

Backend* open_described(const BackendOptions& options) {
  BackendOptions of_cuda = options;
  described::describe(described::find_gpu(options.at("describe")));
  of_cuda.erase("describe");
  return new DescribedCuda(std::unique_ptr<Backend>(open_cuda(of_cuda)));
}

}  // namespace

}  // namespace plexaura::cuda

PLEXAURA_PLUGIN(plexaura::cuda::open_described)
