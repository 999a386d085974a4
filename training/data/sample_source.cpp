#include "training/data/sample_source.h"

#include <utility>

namespace plexaura {

SampleSource::~SampleSource() = default;

Shape batched(std::int64_t samples, const Shape& sample) {
  std::vector<std::int64_t> extents{samples};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return Shape(std::move(extents));
}

std::string to_string(std::span<const Field> fields) {
  std::string text;
  for (const Field& field : fields)
    text += (text.empty() ? "" : ", ") + to_string(field.type) + ' ' + field.name;
  return text;
}

}  // namespace plexaura
