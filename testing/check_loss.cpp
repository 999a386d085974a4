#include "testing/check_loss.h"

#include "testing/copied_loss.h"

namespace plexaura {

GradientReport check_gradients(const Node& loss, const std::vector<Feed>& values, Backend& backend,
                               const GradientOptions& options) {
  const testing::CopiedLoss copied(loss, values, "check_gradients");
  std::vector<Tensor> tensors;
  for (const Feed& value : values) tensors.push_back(value.tensor());
  return check_gradients(BuildFunction(copied), tensors, backend, options);
}

}  // namespace plexaura
