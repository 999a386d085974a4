#include "tests/support/backend_fixture.h"

#include <algorithm>
#include <cstring>

#include "core/device/transfer.h"
#include "core/graph/print.h"
#include "core/tensor/dispatch.h"

namespace plexaura::testing {

namespace {

void copy_to_device(Backend& backend, Address dst, const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return;
  const auto staging = backend.allocate(bytes.size(), MemoryUse::staging);
  std::memcpy(staging->address(), bytes.data(), bytes.size());
  backend.copy(Stream::compute, dst, staging->address(), bytes.size());
  wait_for(backend);
}

std::vector<std::byte> copy_to_host(Backend& backend, Address src, std::size_t count) {
  std::vector<std::byte> bytes(count);
  if (count == 0) return bytes;
  const auto staging = backend.allocate(count, MemoryUse::staging);
  backend.copy(Stream::compute, staging->address(), src, count);
  wait_for(backend);
  std::memcpy(bytes.data(), staging->address(), count);
  return bytes;
}

}  // namespace

void wait_for(Backend& backend, Stream stream) {
  const auto done = backend.make_event();
  done->record(stream);
  done->wait();
}

Tensor counting(const TensorType& type, double start, double step) {
  Tensor tensor(TensorType{DType::float64, type.shape});
  for (double& element : tensor.as<double>()) {
    element = start;
    start += step;
  }
  return tensor.cast(type.dtype);
}

DeviceValue::DeviceValue(Backend& backend, TensorType type, Layout layout)
    : backend_(backend),
      type_(std::move(type)),
      layout_(std::move(layout)),
      memory_(backend.allocate(bytes(), MemoryUse::device)) {}

DeviceValue::DeviceValue(Backend& backend, const Tensor& value, Layout layout)
    : DeviceValue(backend, value.type(), std::move(layout)) {
  write(value);
}

void DeviceValue::write(const Tensor& value) {
  std::vector<std::byte> physical(bytes());
  reorder(value.data(), Layout::row_major(type_.shape.rank()), physical.data(), layout_, type_);
  copy_to_device(backend_, address(), physical);
}

void DeviceValue::spoil() {
  copy_to_device(backend_, address(), std::vector<std::byte>(bytes(), std::byte{0xC7}));
}

std::vector<std::byte> DeviceValue::read_bytes() const { return copy_to_host(backend_, address(), bytes()); }

Tensor DeviceValue::read() const {
  Tensor tensor(type_);
  const std::vector<std::byte> physical = read_bytes();
  reorder(physical.data(), layout_, tensor.data(), Layout::row_major(type_.shape.rank()), type_);
  return tensor;
}

RegionRun::RegionRun(Backend& backend, const Graph& graph, Region region, const std::vector<Tensor>& inputs)
    : RegionRun(backend, graph, std::move(region), inputs, Options{}) {}

RegionRun::RegionRun(Backend& backend, const Graph& graph, Region region, const std::vector<Tensor>& inputs,
                     const Options& options)
    : name_(name_of(graph, region.nodes.back())) {
  RegionQuery query{graph, region, options.given, std::vector<bool>(region.outputs.size(), true)};
  query.given.resize(region.inputs.size());
  const std::vector<Candidate> candidates = backend.propose(query);
  const auto wanted = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
    return options.implementation.empty() || candidate.implementation == options.implementation;
  });
  if (wanted == candidates.end())
    throw UserError("no kernel " + options.implementation + " for " + region.kind);
  candidate_ = *wanted;
  Binding binding;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs_.push_back(std::make_shared<DeviceValue>(backend, inputs[i], candidate_.inputs[i]));
    binding.inputs.push_back(inputs_[i]->address());
  }
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    outputs_.push_back(
        std::make_shared<DeviceValue>(backend, query.type(region.outputs[i]), candidate_.outputs[i]));
    for (const auto& [output, input] : options.in_place)
      if (output == i) outputs_[i] = inputs_[input];
    binding.outputs.push_back(outputs_[i]->address());
  }
  const auto kernel = candidate_.make();
  workspace_ = backend.allocate(kernel->workspace(), MemoryUse::device);
  binding.workspace = workspace_->address();
  binding.name = &name_;
  launch_ = kernel->bind(binding);
}

}  // namespace plexaura::testing
