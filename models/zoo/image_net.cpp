#include "models/zoo/image_net.h"

#include <fmt/format.h>

#include "core/base/error.h"

namespace plexaura {

std::int64_t image_channels(const Shape& sample, std::string_view model) {
  if (sample.rank() == 3) return sample[0];
  throw UserError(
      fmt::format("a model {} takes images [C, H, W], and the samples are {}", model, to_string(sample)));
}

void require_images(const Section& yaml, const Shape& sample, std::string_view model) {
  if (sample.rank() != 3)
    throw yaml.error("name", fmt::format("is {}, which takes images [C, H, W], and the samples are {}", model,
                                         to_string(sample)));
}

Key synchronised_batch_norm_key(bool& into, Need needs) {
  return {.name = "synchronised_batch_norm",
          .into = &into,
          .needs = std::move(needs),
          .meaning =
              "batch norm over the samples of all ranks in a step (or micro-batch); each then costs one more "
              "sum over the ranks in the forward pass and one in the backward pass"};
}

void AveragedFeatures::members(MemberVisitor& visit) {
  visit("features", features_);
  visit("avgpool", global_avg_pool_);
  visit("classifier", classifier_);
}

}  // namespace plexaura
