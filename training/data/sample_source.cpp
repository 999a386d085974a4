#include "training/data/sample_source.h"

namespace plexaura {

SampleSource::~SampleSource() = default;

std::string to_string(std::span<const Field> fields) {
  std::string text;
  for (const Field& field : fields)
    text += (text.empty() ? "" : ", ") + to_string(field.type) + ' ' + field.name;
  return text;
}

}  // namespace plexaura
