#include "tests/distributed/programs/training/small_data.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <numeric>

#include "core/base/error.h"
#include "training/data/idx.h"
#include "training/data/subset.h"

namespace plexaura::testing {
namespace {

constexpr std::int64_t class_count = 10;
constexpr std::int64_t image_extent = 12;

// Returns a number from 0 to 1 that depends only on the arguments.
float noise(std::int64_t a, std::int64_t b) {
  std::uint64_t bits = static_cast<std::uint64_t>(a) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(b);
  for (int round = 0; round < 2; ++round) bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9U;
  return static_cast<float>(bits >> 40) / static_cast<float>(1 << 24);
}

class DrawnData final : public DatasetOf<float> {
 public:
  explicit DrawnData(std::int64_t size) : size_(size) {
    for (std::int64_t i = 0; i < class_count; ++i) names_.push_back(std::to_string(i));
  }

  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return Shape{1, image_extent, image_extent}; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::int64_t label(std::int64_t index) const override { return index % class_count; }
  void read(std::int64_t index, const SampleContext&, std::span<float> sample,
            std::int64_t& label_out) const override {
    label_out = label(index);
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const auto place = static_cast<std::int64_t>(i);
      sample[i] = 0.7F * noise(-1 - label_out, place) + 0.3F * noise(index, place);
    }
  }

 private:
  std::int64_t size_;
  std::vector<std::string> names_;
};

class BrokenData final : public Dataset {
 public:
  BrokenData(std::shared_ptr<const Dataset> whole, std::int64_t broken)
      : whole_(std::move(whole)), broken_(broken) {}

  std::int64_t size() const override { return whole_->size(); }
  Shape sample_shape() const override { return whole_->sample_shape(); }
  DType sample_dtype() const override { return whole_->sample_dtype(); }
  const std::vector<std::string>& class_names() const override { return whole_->class_names(); }
  std::int64_t label(std::int64_t index) const override { return whole_->label(index); }
  void read_sample(std::int64_t index, const SampleContext& context, std::span<std::byte> sample,
                   std::int64_t& label) const override {
    if (index == broken_) throw UserError(fmt::format("sample {} cannot be read", index));
    whole_->read_sample(index, context, sample, label);
  }

 private:
  std::shared_ptr<const Dataset> whole_;
  std::int64_t broken_;
};

std::shared_ptr<const Dataset> first_of(std::shared_ptr<const Dataset> whole, std::int64_t size) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(size));
  std::iota(indices.begin(), indices.end(), 0);
  return std::make_shared<SubsetDataset>(std::move(whole), std::move(indices));
}

std::shared_ptr<const Dataset> make_whole_data(std::int64_t size) {
  const char* folder = std::getenv("PLEXAURA_DATA");
  const std::filesystem::path mnist = std::filesystem::path(folder == nullptr ? "" : folder) / "mnist";
  const std::filesystem::path images = mnist / "t10k-images-idx3-ubyte.gz";
  if (folder == nullptr || !std::filesystem::exists(images)) return std::make_shared<DrawnData>(size);
  return first_of(std::make_shared<IdxDataset>(images, mnist / "t10k-labels-idx1-ubyte.gz"), size);
}

}  // namespace

std::shared_ptr<const Dataset> make_small_data(std::int64_t size, std::optional<std::int64_t> broken) {
  const std::shared_ptr<const Dataset> whole = make_whole_data(size);
  return broken ? std::make_shared<BrokenData>(whole, *broken) : whole;
}

}  // namespace plexaura::testing
