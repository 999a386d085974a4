#include "distributed/servers/ranks/part_deal.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <istream>
#include <iterator>
#include <utility>

namespace plexaura {

void PartDeal::open(const DealtSteps& steps) {
  if (std::exchange(behind_, steps.behind) != steps.behind) resumes_at_.reset();
  parts_ = steps.parts;
  end_ = steps.first == steps.end ? steps.first * parts_ : (steps.end - 1) * parts_ + steps.parts_of_last;
  next_ = std::exchange(resumes_at_, std::nullopt).value_or(steps.first * parts_);
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

void PartDeal::close() { resumes_at_ = std::exchange(next_, std::nullopt); }

std::string PartDeal::pack() const {
  std::vector<std::int64_t> left(returned_.begin(), returned_.end());
  for (const auto& drawn : unfinished_) left.insert(left.end(), drawn.begin(), drawn.end());
  std::ranges::sort(left);
  constexpr std::int64_t none = -1;
  return fmt::format("{} {} {} {}\n", behind_, next_.value_or(resumes_at_.value_or(none)), left.size(),
                     fmt::join(left, " "));
}

void PartDeal::unpack(std::istream& packed) {
  std::int64_t next = 0;
  std::size_t left = 0;
  packed >> behind_ >> next >> left;
  if (next >= 0) resumes_at_ = next;
  for (returned_.resize(left); std::int64_t & part : returned_) packed >> part;
}

}  // namespace plexaura
