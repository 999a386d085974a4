#include "app/options/usable_number.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace plexaura {

std::string_view lost_as(double value, DType precision) {
  const bool is_narrow = precision == DType::float32;
  const double least = is_narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  const double rounded = is_narrow ? static_cast<float>(value) : value;
  if (std::isinf(rounded)) return "infinite";
  return value != 0 && rounded < least ? "0" : "";
}

void check_usable(const Section& section, std::string_view key, double value, DType precision) {
  const std::string_view lost = lost_as(value, precision);
  if (!lost.empty())
    throw section.error(key, fmt::format("is {}, which is {} in {}; give a {} number", value, lost,
                                         name_of(precision), lost == "0" ? "larger" : "smaller"));
}

void check_rate_usable(const Section& section, double rate, double peak, DType precision) {
  const std::string_view lost = lost_as(peak * rate, precision);
  if (!lost.empty())
    throw section.error(
        "rate", fmt::format("is {}, which makes the learning rate {} in {}; give a {} number", rate, lost,
                            name_of(precision), lost == "0" ? "larger" : "smaller"));
  check_usable(section, "rate", rate, precision);
}

}  // namespace plexaura
