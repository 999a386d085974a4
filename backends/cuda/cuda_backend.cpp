// The plugin for NVIDIA GPUs. Options:
//   device  the number of the GPU, from 0

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "backends/cpu/adapter/in_place.h"
#include "backends/cpu/adapter/inputs_read.h"
#include "backends/cuda/cuda_event.h"
#include "backends/cuda/device.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/strides.h"
#include "core/device/plugin.h"
#include "core/error.h"
#include "core/graph/print.h"
#include "core/ops/reorder.h"

namespace plexaura::cuda {

namespace {

class CudaMemory final : public Memory {
 public:
  CudaMemory(std::shared_ptr<Device> device, std::size_t bytes, MemoryUse use)
      : device_(std::move(device)),
        bytes_(bytes),
        use_(use),
        address_(use == MemoryUse::device ? runtime::allocate_device(std::max<std::size_t>(bytes, 1))
                                          : runtime::allocate_pinned(std::max<std::size_t>(bytes, 1))) {}
  ~CudaMemory() override {
    if (use_ == MemoryUse::device)
      runtime::free_device(address_);
    else
      runtime::free_pinned(address_);
  }

  Address address() const override { return address_; }
  std::size_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  std::size_t bytes_;
  MemoryUse use_;
  Address address_;
};

// What launches of one kernel share.
struct Code {
  std::shared_ptr<const Op> op;
  std::function<void(const Call& call)> enqueue;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
};

class CudaLaunch final : public Launch {
 public:
  CudaLaunch(std::shared_ptr<Device> device, std::shared_ptr<const Code> code, const Binding& binding)
      : device_(std::move(device)),
        code_(std::move(code)),
        name_(binding.name != nullptr ? *binding.name : "a kernel without a name"),
        inputs_(views(binding.inputs, code_->inputs)),
        outputs_(views(binding.outputs, code_->outputs)) {}

  void run() override {
    if (std::ranges::all_of(outputs_, [](const View& view) { return view.address == nullptr; })) return;
    code_->enqueue(
        {*code_->op, inputs_, outputs_, device_->compute.get(), name_, device_->wrong_index.address()});
  }

 private:
  static std::vector<View> views(const std::vector<Address>& addresses,
                                 const std::vector<TensorType>& types) {
    std::vector<View> views;
    for (std::size_t i = 0; i < addresses.size(); ++i) views.push_back({addresses[i], &types[i]});
    return views;
  }

  std::shared_ptr<Device> device_;
  std::shared_ptr<const Code> code_;
  std::string name_;
  std::vector<View> inputs_;
  std::vector<View> outputs_;
};

class CudaKernel final : public Kernel {
 public:
  CudaKernel(std::shared_ptr<Device> device, Code code)
      : device_(std::move(device)), code_(std::make_shared<const Code>(std::move(code))) {}
  std::unique_ptr<Launch> bind(const Binding& binding) const override {
    return std::make_unique<CudaLaunch>(device_, code_, binding);
  }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<const Code> code_;
};

class CudaRecording final : public Recording {
 public:
  CudaRecording(std::shared_ptr<Device> device, runtime::Graph* graph,
                std::vector<std::shared_ptr<EventState>> events)
      : device_(std::move(device)), graph_(graph), events_(std::move(events)) {}

  void replay() override {
    device_->capture.forbid("replaying");
    runtime::launch(graph_.get(), device_->compute.get());
    for (const auto& event : events_) {
      const std::lock_guard lock(event->mutex);
      event->recorded_in(device_->compute.get());
    }
  }

 private:
  std::shared_ptr<Device> device_;
  GraphHandle graph_;
  std::vector<std::shared_ptr<EventState>> events_;
};

std::vector<TensorType> types_of(const RegionQuery& query, const std::vector<Value>& values) {
  std::vector<TensorType> types;
  for (const Value value : values) types.push_back(query.type(value));
  return types;
}

std::vector<Layout> row_major(const std::vector<TensorType>& types) {
  std::vector<Layout> layouts;
  for (const TensorType& type : types) layouts.push_back(Layout::row_major(type.shape.rank()));
  return layouts;
}

void require_axes(const RegionQuery& query, const std::vector<TensorType>& types) {
  for (const TensorType& type : types)
    if (type.shape.rank() > most_axes)
      throw UserError(fmt::format(
          "{}: the kernels of the backend 'cuda' take values of up to {} axes, and {} has {}; reshape it, "
          "or use the backend 'cpu'",
          name_of(query.graph, query.region.nodes[0]), most_axes, to_string(type), type.shape.rank()));
}

struct Offer {
  std::function<void(const Call& call)> enqueue;  // empty: none
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

Offer offer_for(const RegionQuery& query, const std::vector<TensorType>& inputs,
                const std::vector<TensorType>& outputs) {
  if (query.op().name() == "reorder") {
    const Layout to = op_cast<Reorder>(query.op()).to();
    const Layout from = query.given[0].value_or(to);
    return {[from, to](const Call& call) { enqueue_reorder(call, from, to); }, {from}, {to}};
  }
  if (const OpKernel kernel = find_kernel(query.op().name()); kernel != nullptr)
    return {kernel, row_major(inputs), row_major(outputs)};
  return {};
}

double bytes_of(const std::vector<TensorType>& types) {
  double bytes = 0;
  for (const TensorType& type : types) bytes += static_cast<double>(type.bytes());
  return bytes;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int index)
      : device_(std::make_shared<Device>(index)),
        info_{.name = device_->info.name,
              .description = device_->info.description,
              .kind = device_->info.description,
              .bytes_reordered_in_a_second = device_->info.bytes_in_a_second} {}

  const BackendInfo& info() const override { return info_; }

  std::unique_ptr<Memory> allocate(std::size_t bytes, MemoryUse use) override {
    device_->capture.forbid("allocating memory");
    return std::make_unique<CudaMemory>(device_, bytes, use);
  }

  void copy(Stream stream, Address dst, const std::byte* src, std::size_t bytes) override {
    if (device_->capture.active()) device_->capture.require_part(stream);
    if (bytes > 0) runtime::copy(device_->stream(stream), dst, src, bytes);
  }

  std::unique_ptr<Event> make_event() override {
    device_->capture.forbid("making an event");
    return std::make_unique<CudaEvent>(device_);
  }

  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    const Capture::Scope scope(device_->capture);
    runtime::Stream* const compute = device_->compute.get();
    runtime::begin_capture(compute);
    try {
      body();
      join_copies();
    } catch (...) {
      runtime::drop_capture(compute);
      throw;
    }
    return std::make_unique<CudaRecording>(device_, runtime::end_capture(compute),
                                           device_->capture.take_events());
  }

  std::vector<Region> regions(const Graph&, NodeId, const Uses&) const override { return {}; }

  std::vector<Candidate> propose(const RegionQuery& query) const override {
    if (query.region.nodes.size() != 1) return {};
    const std::vector<TensorType> inputs = types_of(query, query.region.inputs);
    const std::vector<TensorType> outputs = types_of(query, query.region.outputs);
    Offer offer = offer_for(query, inputs, outputs);
    if (!offer.enqueue) return {};
    require_axes(query, inputs);
    require_axes(query, outputs);
    Candidate candidate;
    candidate.implementation = "cuda";
    candidate.inputs = std::move(offer.inputs);
    candidate.outputs = std::move(offer.outputs);
    candidate.reads = inputs_read(query);
    candidate.in_place = in_place_pairs(query.op(), inputs, outputs);
    constexpr double seconds_of_launch = 3e-6;
    candidate.seconds =
        seconds_of_launch + (bytes_of(inputs) + bytes_of(outputs)) / device_->info.bytes_in_a_second;
    candidate.make = [device = device_, code = Code{query.graph.record(query.region.nodes[0]).op,
                                                    offer.enqueue, inputs, outputs}] {
      return std::make_shared<const CudaKernel>(device, code);
    };
    return {std::move(candidate)};
  }

 private:
  // What was captured on the copy stream belongs to the graph only where the compute stream waits for it.
  void join_copies() {
    if (!device_->capture.has_copy_stream()) return;
    runtime::record(joined_.get(), device_->copy.get());
    runtime::hold(device_->compute.get(), joined_.get());
  }

  std::shared_ptr<Device> device_;
  EventHandle joined_{runtime::make_event()};
  BackendInfo info_;
};

int number_of(std::string_view text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0)
    throw UserError(fmt::format(
        "the option 'device' of the backend 'cuda' is '{}'; it must be the number of a GPU, from 0", text));
  return number;
}

Backend* open_cuda(const BackendOptions& options) {
  int index = 0;
  for (const auto& [name, value] : options)
    if (name == "device")
      index = number_of(value);
    else
      throw UserError(fmt::format("the backend 'cuda' has no option '{}'; it has: device", name));
  return new CudaBackend(index);
}

}  // namespace

}  // namespace plexaura::cuda

PLEXAURA_PLUGIN(plexaura::cuda::open_cuda)
