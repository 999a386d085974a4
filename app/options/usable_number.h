#pragma once

#include <string_view>

#include "core/tensor/dtype.h"
#include "models/config/config.h"

namespace plexaura {

// For a value that is not negative: returns "0" if the value is not zero but kernels may treat it as zero in `precision`,
// as they may with denormal numbers; "infinite" if it overflows in `precision`; and an empty text for all other values.
std::string_view lost_as(double value, DType precision);

// Throws UserError with the place of the key if its value is lost in `precision`.
void check_usable(const Section& section, std::string_view key, double value, DType precision);

// Throws UserError for the key `rate`, a factor of the learning rate `peak`, if the rate or the product is lost in
// `precision`.
void check_rate_usable(const Section& section, double rate, double peak, DType precision);

}  // namespace plexaura
