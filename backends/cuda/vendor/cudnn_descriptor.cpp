#include "backends/cuda/vendor/cudnn_descriptor.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura::cuda::vendor {

void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  char words[512] = {};
  cudnnGetLastErrorString(words, sizeof words);
  throw DeviceError(fmt::format("cuDNN: {} failed: {}: {}", call, cudnnGetErrorString(status), words));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check_cudnn(cudnnBackendCreateDescriptor(type, &state_->descriptor), "cudnnBackendCreateDescriptor");
}

Descriptor::State::~State() {
  if (descriptor != nullptr) cudnnBackendDestroyDescriptor(descriptor);
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& part) {
  state_->parts.push_back(part);
  return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, part.get());
}

Descriptor& Descriptor::set_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                  std::int64_t count, const void* values) {
  check_cudnn(cudnnBackendSetAttribute(get(), name, type, count, values), "cudnnBackendSetAttribute");
  return *this;
}

std::int64_t Descriptor::get_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                   std::int64_t most, void* values) const {
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(get(), name, type, most, &count, values), "cudnnBackendGetAttribute");
  return std::min(count, most);
}

Descriptor Descriptor::part(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const {
  Descriptor part(type);
  cudnnBackendDescriptor_t descriptor = part.get();
  get_array(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor);
  return part;
}

std::vector<Descriptor> Descriptor::parts(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                          std::int64_t most) const {
  std::int64_t count = most;
  if (most == 0)
    check_cudnn(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
                "cudnnBackendGetAttribute");
  std::vector<Descriptor> parts;
  std::vector<cudnnBackendDescriptor_t> descriptors;
  for (std::int64_t i = 0; i < count; ++i) descriptors.push_back(parts.emplace_back(type).get());
  parts.resize(
      static_cast<std::size_t>(get_array(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, descriptors.data())),
      parts.empty() ? Descriptor(type) : parts.front());
  return parts;
}

bool Descriptor::try_to_finalize() const {
  const cudnnStatus_t status = cudnnBackendFinalize(get());
  switch (CUDNN_STATUS_CATEGORY(status)) {
    case CUDNN_STATUS_BAD_PARAM:
    case CUDNN_STATUS_NOT_SUPPORTED:
    case CUDNN_STATUS_INTERNAL_ERROR:  // some engines report this if they cannot be compiled
      return false;
    default:
      check_cudnn(status, "cudnnBackendFinalize");
      return true;
  }
}

Descriptor& Descriptor::finalize() {
  if (!try_to_finalize()) throw Refused();
  return *this;
}

}  // namespace plexaura::cuda::vendor
