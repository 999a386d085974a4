#include "training/data/sample_reader.h"

#include <fmt/format.h>

#include "core/error.h"

namespace plexaura {

namespace {

// The rank's samples of one epoch as a ring.
class RankRing {
 public:
  RankRing(const BatchPlan& plan, std::int64_t rank, std::int64_t step, std::int64_t position)
      : plan_(plan), rank_(rank), step_(step), position_(position) {}

  std::int64_t position() const { return position_; }

  void advance() {
    ++position_;
    Slice share = plan_.rank_share(step_, rank_);
    while (position_ >= share.first + share.count) {
      step_ = (step_ + 1) % plan_.steps_per_epoch();
      share = plan_.rank_share(step_, rank_);
      position_ = share.first;
    }
  }

 private:
  const BatchPlan& plan_;
  std::int64_t rank_;
  std::int64_t step_;
  std::int64_t position_;
};

}  // namespace

SampleReader::SampleReader(const SampleSource& source, const BatchPlan& plan, std::int64_t rank,
                           std::uint64_t seed, OnError on_error)
    : source_(source), plan_(plan), rank_(rank), seed_(seed), on_error_(on_error) {}

void SampleReader::read(const EpochPosition& place, std::span<const std::span<std::byte>> values) {
  const auto index_at = [&](std::int64_t position) {
    return place.order[static_cast<std::size_t>(position)];
  };
  if (on_error_ == OnError::fail)
    return source_.read_fields(index_at(place.position), {seed_, place.epoch}, values);
  RankRing ring(plan_, rank_, place.step, place.position);
  do {
    if (try_read(index_at(ring.position()), place.epoch, values)) return;
    ring.advance();
  } while (ring.position() != place.position);
  throw UserError(
      fmt::format("none of the samples of rank {} can be read, so on_error: skip finds no replacement; the "
                  "first error is: {}",
                  rank_, skipped().front()));
}

bool SampleReader::try_read(std::int64_t index, std::int64_t epoch,
                            std::span<const std::span<std::byte>> values) {
  if (known_broken(index)) return false;
  try {
    source_.read_fields(index, {seed_, epoch}, values);
    return true;
  } catch (const UserError& error) {
    const std::lock_guard lock(mutex_);
    broken_.emplace(index, error.what());
    return false;
  }
}

bool SampleReader::known_broken(std::int64_t index) const {
  const std::lock_guard lock(mutex_);
  return broken_.contains(index);
}

std::vector<std::string> SampleReader::skipped() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> errors;
  for (const auto& [index, error] : broken_) errors.push_back(error);
  return errors;
}

}  // namespace plexaura
