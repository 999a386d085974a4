#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/export.h"
#include "core/tensor/tensor.h"

namespace plexaura {

// The options of an op as named values: see fields.h. Printing, hashing and equality of ops all come from here, so that
// a field that is listed once can be forgotten nowhere. Equality is exact: floats by their bits, tensors by their
// contents. A value, but that copies share tensors, which nobody changes; several threads may read one at once.
class PLEXAURA_API Description {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                             std::vector<double>, std::shared_ptr<const Tensor>>;

  Description& add(std::string key, Value value);
  const std::vector<std::pair<std::string, Value>>& fields() const { return fields_; }
  std::size_t hash() const;
  bool operator==(const Description& other) const;

 private:
  std::vector<std::pair<std::string, Value>> fields_;
};

// "axes=[1], keepdims=true"; floats print in the fewest digits that give the same number back.
PLEXAURA_API std::string to_string(const Description& description);
// One value, as it is printed there.
PLEXAURA_API std::string text_of(const Description::Value& value);

}  // namespace plexaura
