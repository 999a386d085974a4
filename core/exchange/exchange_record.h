#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace plexaura {

// What a rank has exchanged with the others over some steps. All figures are its own.
struct ExchangeRecord {
  std::int64_t bytes = 0;                       // of the gradients or weights that it has brought
  std::optional<std::int64_t> sent_bytes = {};  // in messages to other ranks; none where nobody counts them
  double seconds = 0;                           // in which an exchange was under way
  bool overlaps = false;                        // with what the rank computes
  // Of these seconds those in which the thread that trains did nothing but wait; none where a device computes meanwhile.
  std::optional<double> waited_seconds = {};

  // The share of the exchange that was hidden behind what the rank computed.
  std::optional<double> overlap() const {
    if (!overlaps || !waited_seconds || seconds <= 0) return std::nullopt;
    return std::max(1 - *waited_seconds / seconds, 0.0);
  }
  double gb_per_second() const { return seconds > 0 ? 1e-9 * static_cast<double>(bytes) / seconds : 0; }
};

}  // namespace plexaura
