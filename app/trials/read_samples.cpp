#include "app/trials/read_samples.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "training/files/shortage.h"

namespace plexaura {

namespace {

// Returns a stride for indices: steps of this size modulo `size` visit each index once, and early ones lie
// far apart.
std::int64_t stride_over(std::int64_t size) {
  constexpr double golden = 0.6180339887498949;
  auto stride = std::max<std::int64_t>(1, static_cast<std::int64_t>(golden * static_cast<double>(size)));
  while (std::gcd(stride, size) != 1) ++stride;
  return stride;
}

class SomeSamples final : public SampleSource {
 public:
  SomeSamples(std::shared_ptr<const SampleSource> all, std::int64_t count)
      : all_(std::move(all)), count_(count) {}

  std::int64_t size() const override { return count_; }
  std::vector<Field> fields() const override { return all_->fields(); }
  bool in_memory() const override { return all_->in_memory(); }
  void read_fields(std::int64_t index, const SampleContext& context,
                   std::span<const std::span<std::byte>> values) const override {
    all_->read_fields(index * all_->size() / count_, context, values);
  }

 private:
  std::shared_ptr<const SampleSource> all_;
  std::int64_t count_;
};

}  // namespace

ReadSampleCount read_samples(const SampleSource& source, std::int64_t rank, std::int64_t ranks,
                             std::uint64_t seed, OnError on_error, const std::function<bool()>& is_over) {
  std::vector<std::vector<std::byte>> memory;
  for (const Field& field : source.fields())
    memory.emplace_back(static_cast<std::size_t>(field.type.bytes()));
  const std::vector<std::span<std::byte>> values(memory.begin(), memory.end());
  const std::int64_t size = source.size();
  const std::int64_t stride = stride_over(size);
  ReadSampleCount count;
  for (std::int64_t place = 0, index = 0; place < size; ++place, index = (index + stride) % size) {
    if (place % ranks != rank) continue;
    if (is_over()) break;
    try {
      source.read_fields(index, {.seed = seed}, values);
    } catch (const LimitReached&) {
      throw;
    } catch (const UserError& error) {
      if (on_error == OnError::fail) throw;
      if (count.unreadable++ == 0) count.first_error = error.what();
    }
    ++count.read;
  }
  return count;
}

std::shared_ptr<const SampleSource> some_samples(std::shared_ptr<const SampleSource> source,
                                                 std::int64_t count) {
  if (source == nullptr || source->size() <= count) return source;
  return std::make_shared<SomeSamples>(std::move(source), count);
}

}  // namespace plexaura
