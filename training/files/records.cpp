#include "training/files/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/did_you_mean.h"
#include "core/base/error.h"

namespace plexaura {

double value_of(std::string_view name, std::span<const MetricValue> metrics) {
  std::vector<std::string> known;
  for (const MetricValue& metric : metrics) {
    if (metric.name == name) return metric.value;
    known.push_back(metric.name);
  }
  throw UserError(fmt::format("the model reports no metric '{}'; it reports {}{}", name,
                              known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")),
                              did_you_mean(name, known)));
}

}  // namespace plexaura
