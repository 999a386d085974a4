#include "tests/distributed/programs/training/served_sum.h"

#include <fmt/format.h>

namespace plexaura::testing {

void ServedSum::begin(WeightsImmigration& border) {
  border_ = &border;
  final_.assign(border.buckets().size(), nullptr);
}

// Whether any rank that trains has another step.
bool ServedSum::goes_on(std::int64_t mine) {
  all_.sum(DType::int64, reinterpret_cast<std::byte*>(&mine), 1, "whether there is another step");
  return mine > 0;
}

void ServedSum::sum(std::size_t bucket, std::byte* data) {
  all_.sum(border_->buckets()[bucket].dtype, data, border_->buckets()[bucket].count,
           fmt::format("bucket {}", bucket));
}

UpdateAnswer ServedSum::before_update(std::size_t bucket) {
  if (bucket == 0) goes_on(1);
  final_[bucket]->wait();
  sum(bucket, border_->gradients(bucket).data());
  return {};
}

void ServedSum::serve(WeightsImmigration& border) {
  while (goes_on(0))
    for (std::size_t bucket = 0; bucket < border.buckets().size(); ++bucket) {
      std::vector<std::byte> zeros(border.gradients(bucket).size());
      sum(bucket, zeros.data());
    }
}

}  // namespace plexaura::testing
