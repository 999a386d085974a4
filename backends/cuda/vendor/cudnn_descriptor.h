#pragma once

#include <cudnn.h>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace plexaura::cuda::vendor {

// Throws DeviceError with cuDNN's message, unless the call succeeded.
void check_cudnn(cudnnStatus_t status, const char* call);

// Thrown if cuDNN does not support the contents of a descriptor.
struct Refused {};

// A descriptor of cuDNN's graph API, together with the descriptors that it refers to. Copies share the same
// descriptor.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  cudnnBackendDescriptor_t get() const { return state_->descriptor; }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const std::vector<T>& values) {
    return set_array(name, type, static_cast<std::int64_t>(values.size()), values.data());
  }
  template <class T>
  requires(!std::is_same_v<T, Descriptor>) Descriptor& set(cudnnBackendAttributeName_t name,
                                                           cudnnBackendAttributeType_t type, const T& value) {
    return set_array(name, type, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& part);

  // Returns the first values of an attribute, at most `most`.
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        std::int64_t most) const {
    std::vector<T> values(static_cast<std::size_t>(most));
    values.resize(static_cast<std::size_t>(get_array(name, type, most, values.data())));
    return values;
  }
  std::int64_t number(cudnnBackendAttributeName_t name) const {
    return values<std::int64_t>(name, CUDNN_TYPE_INT64, 1).at(0);
  }
  Descriptor part(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;
  // Returns the descriptors in an attribute. `most` is the largest number of them. With 0, cuDNN counts them
  // itself, which it cannot do for the knobs of a configuration.
  std::vector<Descriptor> parts(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                std::int64_t most = 0) const;

  bool try_to_finalize() const;  // returns false if cuDNN refuses the descriptor
  Descriptor& finalize();        // throws Refused if cuDNN refuses the descriptor

 private:
  struct State {
    ~State();
    cudnnBackendDescriptor_t descriptor = nullptr;
    std::vector<Descriptor> parts;  // descriptors to which this one refers; they must outlive it
  };

  Descriptor& set_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        std::int64_t count, const void* values);
  std::int64_t get_array(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::int64_t most, void* values) const;

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace plexaura::cuda::vendor
