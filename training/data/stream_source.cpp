#include "training/data/stream_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "training/data/random.h"

namespace plexaura {

StreamReader::~StreamReader() = default;

StreamSource::~StreamSource() = default;

namespace {

class ShuffledReader final : public StreamReader {
 public:
  ShuffledReader(std::unique_ptr<StreamReader> reader, std::span<const Field> fields, std::int64_t buffer,
                 std::uint64_t seed)
      : reader_(std::move(reader)), buffer_(static_cast<std::size_t>(buffer)), random_{seed, tag} {
    for (const Field& field : fields) sizes_.push_back(static_cast<std::size_t>(field.type.bytes()));
  }

  bool next(std::span<const std::span<std::byte>> values) override {
    while (has_more_ && samples_.size() < buffer_) read_one();
    if (samples_.empty()) return false;
    std::swap(samples_[random_.below(samples_.size())], samples_.back());
    const std::byte* from = samples_.back().data();
    for (const std::span<std::byte> to : values) {
      std::copy_n(from, to.size(), to.data());
      from += to.size();
    }
    samples_.pop_back();
    return true;
  }

 private:
  static constexpr std::uint64_t tag =
      0x73747265616d;  // "stream": separates these numbers from others of the seed

  void read_one() {
    std::size_t bytes = 0;
    for (const std::size_t size : sizes_) bytes += size;
    std::vector<std::byte> sample(bytes);
    std::vector<std::span<std::byte>> values;
    std::size_t at = 0;
    for (const std::size_t size : sizes_) {
      values.push_back(std::span(sample).subspan(at, size));
      at += size;
    }
    has_more_ = reader_->next(values);
    if (has_more_) samples_.push_back(std::move(sample));
  }

  std::unique_ptr<StreamReader> reader_;
  std::size_t buffer_;
  Random random_;
  std::vector<std::size_t> sizes_;  // sizes of the fields, in bytes
  std::vector<std::vector<std::byte>> samples_;
  bool has_more_ = true;
};

}  // namespace

std::unique_ptr<StreamReader> shuffled(std::unique_ptr<StreamReader> reader, std::span<const Field> fields,
                                       std::int64_t buffer, std::uint64_t seed) {
  return std::make_unique<ShuffledReader>(std::move(reader), fields, buffer, seed);
}

}  // namespace plexaura
