#include "tests/support/null_device.h"

#include <algorithm>
#include <new>

#include "core/ops/reorder.h"

namespace plexaura::testing {

namespace {

constexpr std::align_val_t alignment{64};

// Device memory has an address that must not be accessed. Staging memory is real and filled with zeros.
class NullMemory final : public Memory {
 public:
  NullMemory(std::size_t bytes, MemoryUse use) : bytes_(bytes), real_(use == MemoryUse::staging) {
    if (!real_) return;
    address_ = static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), alignment));
    std::fill_n(address_, bytes, std::byte{0});
  }
  ~NullMemory() override {
    if (real_) ::operator delete(address_, alignment);
  }
  NullMemory(const NullMemory&) = delete;
  NullMemory& operator=(const NullMemory&) = delete;

  Address address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::size_t bytes_;
  bool real_;
  Address address_ = reinterpret_cast<Address>(std::uintptr_t{1} << 40);
};

class NullEvent final : public Event {
 public:
  void record(Stream) override {}
  void signal() override {}
  void reset() override {}
  void hold(Stream) override {}
  bool passed() const override { return true; }
  void wait() override {}
};

class NullRecording final : public Recording {
 public:
  void replay() override {}
};

class NullLaunch final : public Launch {
 public:
  explicit NullLaunch(std::shared_ptr<NullDevice::Counts> counts) : counts_(std::move(counts)) {}
  void run() override { ++counts_->launches; }

 private:
  std::shared_ptr<NullDevice::Counts> counts_;
};

class NullKernel final : public Kernel {
 public:
  NullKernel(std::shared_ptr<NullDevice::Counts> counts, std::size_t workspace)
      : counts_(std::move(counts)), workspace_(workspace) {}
  std::size_t workspace() const override { return workspace_; }
  std::unique_ptr<Launch> bind(const Binding&) const override {
    return std::make_unique<NullLaunch>(counts_);
  }

 private:
  std::shared_ptr<NullDevice::Counts> counts_;
  std::size_t workspace_;
};

std::vector<std::pair<std::size_t, std::size_t>> equal_types(const RegionQuery& query) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t output = 0; output < query.region.outputs.size(); ++output)
    for (std::size_t input = 0; input < query.region.inputs.size(); ++input)
      if (query.type(query.region.outputs[output]) == query.type(query.region.inputs[input]))
        pairs.emplace_back(output, input);
  return pairs;
}

}  // namespace

std::unique_ptr<Memory> NullDevice::allocate(std::size_t bytes, MemoryUse use) {
  if (use == MemoryUse::device) allocated_bytes_ += bytes;
  return std::make_unique<NullMemory>(bytes, use);
}

std::unique_ptr<Event> NullDevice::make_event() { return std::make_unique<NullEvent>(); }

std::unique_ptr<Recording> NullDevice::record(const std::function<void()>& body) {
  if (!options_.records) return nullptr;
  body();
  return std::make_unique<NullRecording>();
}

std::vector<Region> NullDevice::regions(const Graph& graph, NodeId last, const Uses& uses) const {
  return options_.regions ? options_.regions(graph, last, uses) : std::vector<Region>{};
}

Layout NullDevice::layout_of(const RegionQuery& query, Value value) const {
  const TensorType& type = query.type(value);
  return options_.layout ? options_.layout(type) : Layout::row_major(type.shape.rank());
}

std::vector<Candidate> NullDevice::propose(const RegionQuery& query) const {
  if (options_.without.contains(query.region.kind)) return {};
  Candidate candidate;
  candidate.implementation = "null";
  candidate.make = [counts = counts_, workspace = options_.workspace] {
    ++counts->kernels;
    return std::make_shared<NullKernel>(counts, workspace);
  };
  if (query.region.kind == "reorder") {
    const Layout& to = op_cast<Reorder>(query.op()).to();
    candidate.inputs = {query.given[0].value_or(to)};
    candidate.outputs = {to};
    return {candidate};
  }
  for (const Value value : query.region.inputs) candidate.inputs.push_back(layout_of(query, value));
  for (const Value value : query.region.outputs) candidate.outputs.push_back(layout_of(query, value));
  if (options_.in_place) candidate.in_place = equal_types(query);
  return {candidate};
}

}  // namespace plexaura::testing
