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

class Subgraph;

// The options of an op as named values: see fields.h. Printing, hashing and comparing ops all use it, so none
// of them can miss a field. Equality is exact: floats are compared by their bits, tensors by their contents,
// and graphs by their structure. Copies share tensors and graphs, which never change. Several threads may
// read a Description at once.
class PLEXAURA_API Description {
 public:
  using Value =
      std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                   std::shared_ptr<const Tensor>, std::shared_ptr<const Subgraph>>;

  Description& add(std::string key, Value value);
  const std::vector<std::pair<std::string, Value>>& fields() const { return fields_; }
  std::size_t hash() const;
  bool operator==(const Description& other) const;

 private:
  std::vector<std::pair<std::string, Value>> fields_;
};

// Returns the fields as in "axes=[1], keepdims=true". Floats are printed with the fewest digits that parse to
// the same number.
PLEXAURA_API std::string to_string(const Description& description);
// Returns one value in the form of to_string(description).
PLEXAURA_API std::string text_of(const Description::Value& value);

}  // namespace plexaura
