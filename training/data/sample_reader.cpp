#include "training/data/sample_reader.h"

#include <fmt/format.h>

#include "core/base/error.h"
#include "training/files/shortage.h"

namespace plexaura {

namespace {

// The samples of one part in all batches of an epoch, as a ring.
class PartRing {
 public:
  PartRing(const BatchPlan& plan, const EpochPosition& place)
      : plan_(plan), part_(place.part), step_(place.step), position_(place.position) {}

  std::int64_t position() const { return position_; }

  void advance() {
    ++position_;
    Slice share = plan_.rank_share(step_, part_);
    while (position_ >= share.first + share.count) {
      step_ = (step_ + 1) % plan_.steps_per_epoch();
      share = plan_.rank_share(step_, part_);
      position_ = share.first;
    }
  }

 private:
  const BatchPlan& plan_;
  std::int64_t part_;
  std::int64_t step_;
  std::int64_t position_;
};

}  // namespace

SampleReader::SampleReader(const SampleSource& source, const BatchPlan& plan, std::uint64_t seed,
                           OnError on_error, bool replace)
    : source_(source), plan_(plan), seed_(seed), on_error_(on_error), replace_(replace) {}

bool SampleReader::read(const EpochPosition& place, std::span<const std::span<std::byte>> values) {
  const std::int64_t index = place.order[static_cast<std::size_t>(place.position)];
  if (on_error_ == OnError::fail) {
    source_.read_fields(index, context_of(place), values);
    return true;
  }
  const bool could_be_read = try_read(index, context_of(place), values);
  if (could_be_read || !replace_) return could_be_read;
  read_replacement(place, values);
  return true;
}

void SampleReader::read_replacement(const EpochPosition& place,
                                    std::span<const std::span<std::byte>> values) {
  PartRing ring(plan_, place);
  for (ring.advance(); ring.position() != place.position; ring.advance())
    if (try_read(place.order[static_cast<std::size_t>(ring.position())], context_of(place), values)) return;
  throw UserError(
      fmt::format("none of the samples of rank {} can be read, so on_error: skip finds no replacement; the "
                  "first error is: {}",
                  place.part, skipped().begin()->second));
}

SampleContext SampleReader::context_of(const EpochPosition& place) const {
  const Slice batch = plan_.global_batch(place.step);
  const std::int64_t before = batch.first + (place.position - batch.first + batch.count - 1) % batch.count;
  return {seed_, place.epoch, place.step, place.order[static_cast<std::size_t>(before)]};
}

bool SampleReader::try_read(std::int64_t index, const SampleContext& context,
                            std::span<const std::span<std::byte>> values) {
  if (known_broken(index)) return false;
  try {
    source_.read_fields(index, context, values);
    return true;
  } catch (const LimitReached&) {
    throw;
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

std::map<std::int64_t, std::string> SampleReader::skipped() const {
  const std::lock_guard lock(mutex_);
  return broken_;
}

}  // namespace plexaura
