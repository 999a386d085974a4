#include "distributed/server/part_deal.h"

#include <algorithm>

namespace plexaura {

Draw PartDeal::draw(std::int64_t first, std::int64_t end) {
  if (!next_) {
    next_ = first * parts_;
    end_ = end * parts_;
    if (stopping_) stop();
  }
  if (*next_ >= end_) return {end_ / parts_};
  const std::int64_t drawn = (*next_)++;
  return {drawn / parts_, drawn % parts_};
}

void PartDeal::stop() {
  stopping_ = true;
  if (next_) end_ = std::min(end_, (*next_ + parts_ - 1) / parts_ * parts_);
}

void PartDeal::close() {
  next_.reset();
  stopping_ = false;
}

}  // namespace plexaura
