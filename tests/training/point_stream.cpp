#include "tests/training/point_stream.h"

#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "core/base/error.h"
#include "tests/training/small_run.h"

namespace plexaura::testing {
namespace {

class PointReader final : public StreamReader {
 public:
  PointReader(const PointStreamOptions& options, std::int64_t rank, std::int64_t ranks)
      : source_(points(options.points)),
        count_(options.counts.at(static_cast<std::size_t>(rank))),
        broken_(rank + 1 == ranks ? options.broken : -1),
        interrupted_(rank + 1 == ranks ? options.interrupted : -1),
        slow_(rank + 1 == ranks ? options.slow : 0),
        rank_(rank),
        ranks_(ranks) {}

  bool next(std::span<const std::span<std::byte>> values) override {
    if (at_ == count_) return false;
    if (at_ == broken_) throw UserError(fmt::format("sample {} cannot be read", at_));
    if (at_ == interrupted_) throw StreamInterrupted();
    if (at_ < slow_) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    source_->read_fields((at_++ * ranks_ + rank_) % source_->size(), {}, values);
    return true;
  }

 private:
  std::shared_ptr<const SampleSource> source_;
  std::int64_t count_;
  std::int64_t broken_;
  std::int64_t interrupted_;
  std::int64_t slow_;
  std::int64_t rank_;
  std::int64_t ranks_;
  std::int64_t at_ = 0;
};

class PointStream final : public StreamSource {
 public:
  explicit PointStream(PointStreamOptions options) : options_(std::move(options)) {}

  std::vector<Field> fields() const override { return points(1)->fields(); }
  bool is_divided() const override { return options_.is_divided; }
  std::unique_ptr<StreamReader> open(std::int64_t rank, std::int64_t ranks) const override {
    if (!options_.is_divided) return std::make_unique<PointReader>(options_, 0, 1);
    return std::make_unique<PointReader>(options_, rank, ranks);
  }

 private:
  PointStreamOptions options_;
};

}  // namespace

std::shared_ptr<const StreamSource> point_stream(const PointStreamOptions& options) {
  return std::make_shared<PointStream>(options);
}

}  // namespace plexaura::testing
