#include "distributed/server/part_deal.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace plexaura {

void PartDeal::open(const DealtSteps& steps) {
  parts_ = steps.parts;
  next_ = steps.first * parts_;
  end_ = steps.first == steps.end ? *next_ : (steps.end - 1) * parts_ + steps.parts_of_last;
  if (std::exchange(stopping_, false)) stop();
}

Draw PartDeal::draw(int client) {
  std::int64_t drawn = *next_;
  if (has_returned()) {
    drawn = returned_.front();
    returned_.pop_front();
  } else if (drawn < end_) {
    ++*next_;
  } else {
    return {(end_ + parts_ - 1) / parts_};
  }
  unfinished(client).push_back(drawn);
  return {drawn / parts_, drawn % parts_};
}

void PartDeal::finish(int client, std::int64_t parts) {
  std::deque<std::int64_t>& drawn = unfinished(client);
  drawn.erase(drawn.begin(), drawn.begin() + std::min(parts, std::ssize(drawn)));
}

void PartDeal::finish_all(int client) { unfinished(client).clear(); }

std::int64_t PartDeal::take_back(int client) {
  const std::deque<std::int64_t> left = std::exchange(unfinished(client), {});
  returned_.insert(returned_.end(), left.begin(), left.end());
  return std::ssize(left);
}

void PartDeal::stop() {
  stopping_ = !is_open();
  if (is_open()) end_ = std::min(end_, (*next_ + parts_ - 1) / parts_ * parts_);
}

void PartDeal::close() { next_.reset(); }

}  // namespace plexaura
