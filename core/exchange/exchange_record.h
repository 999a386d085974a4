#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace plexaura {

// The amounts that a rank has exchanged with others over some steps, and the times. All figures are this
// rank's own.
struct ExchangeRecord {
  std::int64_t bytes = 0;  // bytes of gradients or weights that this rank contributed
  // Bytes of this rank's messages to other ranks; empty if not counted.
  std::optional<std::int64_t> sent_bytes = {};
  double seconds = 0;     // time during which an exchange was running
  bool overlaps = false;  // true if exchanges run while the rank computes
  // The part of `seconds` in which the training thread only waited. Empty if a device computes meanwhile.
  std::optional<double> waited_seconds = {};

  // Returns the share of the exchange's time during which this rank computed, from 0 to 1. Returns nothing if
  // exchanges do not overlap, if the waiting time is not known, or if `seconds` is 0.
  std::optional<double> overlap() const {
    if (!overlaps || !waited_seconds || seconds <= 0) return std::nullopt;
    return std::max(1 - *waited_seconds / seconds, 0.0);
  }
  double gb_per_second() const { return seconds > 0 ? 1e-9 * static_cast<double>(bytes) / seconds : 0; }
};

}  // namespace plexaura
