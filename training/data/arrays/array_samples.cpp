#include "training/data/arrays/array_samples.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace plexaura {

namespace {

std::string shape_text(const NpyArray& array) {
  return fmt::format("[{}]", fmt::join(array.extents(), ", "));
}

// Throws unless the array has a first axis with samples, and numbers in each.
void require_samples(const NpyArray& samples) {
  const auto& extents = samples.extents();
  if (extents.size() < 2 || samples.elements() == 0)
    throw UserError(fmt::format(
        "{}: has the shape {}; samples need a first axis of one or more samples, and further ones of "
        "their numbers",
        samples.name(), shape_text(samples)));
}

void refuse_text(const NpyArray& array) {
  if (array.type().is_text())
    throw UserError(
        fmt::format("{}: its elements are text ({}); give numbers", array.name(), array.type().descr));
}

void require_sample_count(const NpyArray& samples, const std::string& what, std::int64_t count) {
  if (count != samples.extents()[0])
    throw UserError(fmt::format("{}: has {} samples, but there are {} {}; give one for each sample",
                                samples.name(), samples.extents()[0], count, what));
}

// Returns the shape of one sample of images with channels, which a model takes as [C, H, W].
Shape channels_first(const NpyArray& samples, std::optional<ChannelAxis> channels) {
  const auto& extents = samples.extents();
  if (!channels)
    throw UserError(
        fmt::format("{}: has the shape {}, where the channels may be the second or the last axis; set "
                    "data.channels to first or last",
                    samples.name(), shape_text(samples)));
  if (*channels == ChannelAxis::first) return Shape{extents[1], extents[2], extents[3]};
  return Shape{extents[3], extents[1], extents[2]};
}

void refuse_channels(const NpyArray& samples, std::optional<ChannelAxis> channels) {
  if (channels)
    throw UserError(fmt::format(
        "{}: has the shape {}, which has no axis of channels; leave out data.channels, or give images "
        "with four axes",
        samples.name(), shape_text(samples)));
}

Shape sample_shape_of(const NpyArray& samples, std::optional<ChannelAxis> channels) {
  require_samples(samples);
  const auto& extents = samples.extents();
  constexpr std::size_t axes_of_images = 4;
  if (extents.size() == axes_of_images) return channels_first(samples, channels);
  refuse_channels(samples, channels);
  return Shape(std::vector<std::int64_t>(extents.begin() + 1, extents.end()));
}

// Copies [H, W, C] to [C, H, W].
template <class T>
void move_channels(std::span<const T> from, std::size_t channels, std::span<T> into) {
  const std::size_t pixels = from.size() / channels;
  for (std::size_t pixel = 0; pixel < pixels; ++pixel)
    for (std::size_t channel = 0; channel < channels; ++channel)
      into[channel * pixels + pixel] = from[pixel * channels + channel];
}

template <class T>
std::vector<std::string> names_of(const std::vector<T>& labels) {
  std::vector<std::string> names;
  for (const T& label : std::set<T>(labels.begin(), labels.end())) names.push_back(fmt::format("{}", label));
  return names;
}

template <class T>
ArrayLabels placed(const NpyArray& array, const std::vector<T>& labels,
                   const std::vector<std::string>& classes) {
  ArrayLabels found{.labels = {}, .class_names = classes.empty() ? names_of(labels) : classes};
  std::map<std::string, std::int64_t> numbers;
  for (const std::string& name : found.class_names) numbers.emplace(name, std::ssize(numbers));
  for (const T& label : labels) {
    const auto number = numbers.find(fmt::format("{}", label));
    if (number == numbers.end())
      throw UserError(
          fmt::format("{}: element {} is '{}', which is none of the {} classes of the training; correct "
                      "the label or add the class",
                      array.name(), found.labels.size(), label, classes.size()));
    found.labels.push_back(number->second);
  }
  return found;
}

}  // namespace

ArrayLabels read_labels(const NpyArray& array, const std::vector<std::string>& classes) {
  if (array.extents().empty() || array.row_elements() != 1 || array.extents().size() > 2)
    throw UserError(fmt::format(
        "{}: has the shape {}, but labels are [N], a whole number or a text for each sample; save "
        "array.argmax(1) if it has a column for each class",
        array.name(), shape_text(array)));
  if (array.type().is_text()) {
    const std::vector<std::string> texts = array.texts();
    if (const auto empty = std::ranges::find(texts, ""); empty != texts.end())
      throw UserError(fmt::format("{}: element {} is an empty text; fill in the class", array.name(),
                                  empty - texts.begin()));
    return placed(array, texts, classes);
  }
  return placed(array, array.whole_numbers(), classes);
}

ArrayNumbers::ArrayNumbers(NpyArray samples, ArrayLabels labels, std::optional<ChannelAxis> channels)
    : samples_(std::move(samples)),
      labels_(std::move(labels)),
      is_channels_last_(channels == ChannelAxis::last),
      shape_(sample_shape_of(samples_, channels)) {
  refuse_text(samples_);
  require_sample_count(samples_, "labels", size());
}

ArrayNumbers::ArrayNumbers(NpyArray samples, NpyArray targets)
    : samples_(std::move(samples)), targets_(std::move(targets)) {
  require_samples(samples_);
  refuse_text(samples_);
  refuse_text(*targets_);
  if (samples_.extents().size() != 2)
    throw UserError(
        fmt::format("{}: has the shape {}, but with targets it must be [samples, features]; reshape it",
                    samples_.name(), shape_text(samples_)));
  const auto& extents = targets_->extents();
  if (extents.empty() || extents.size() > 2 || targets_->elements() == 0)
    throw UserError(
        fmt::format("{}: has the shape {}, but targets are [samples] or [samples, targets]; reshape it",
                    targets_->name(), shape_text(*targets_)));
  require_sample_count(samples_, "rows of targets", extents[0]);
  labels_.class_names = {""};
  labels_.labels.resize(static_cast<std::size_t>(extents[0]));
  shape_ = Shape{samples_.row_elements() + targets_->row_elements()};
}

void ArrayNumbers::read(std::int64_t index, const SampleContext&, std::span<float> sample,
                        std::int64_t& label) const {
  label = this->label(index);
  const auto count = static_cast<std::size_t>(samples_.row_elements());
  const std::int64_t first = index * samples_.row_elements();
  if (targets_) targets_->read_floats(index * targets_->row_elements(), sample.subspan(count));
  if (!is_channels_last_) return samples_.read_floats(first, sample.first(count));
  std::vector<float> pixels(count);
  samples_.read_floats(first, pixels);
  move_channels<float>(pixels, static_cast<std::size_t>(shape_[0]), sample);
}

ArrayImages::ArrayImages(NpyArray samples, ArrayLabels labels, std::optional<ChannelAxis> channels)
    : samples_(std::move(samples)),
      labels_(std::move(labels)),
      is_channels_last_(channels == ChannelAxis::last),
      shape_(sample_shape_of(samples_, channels)) {
  if (shape_.rank() == 2) shape_ = Shape{1, shape_[0], shape_[1]};
  require_sample_count(samples_, "labels", size());
}

void ArrayImages::read(std::int64_t index, const SampleContext&, std::span<std::uint8_t> sample,
                       std::int64_t& label) const {
  label = this->label(index);
  const std::int64_t first = index * samples_.row_elements();
  if (!is_channels_last_) return samples_.read_bytes(first, sample);
  std::vector<std::uint8_t> pixels(sample.size());
  samples_.read_bytes(first, pixels);
  move_channels<std::uint8_t>(pixels, static_cast<std::size_t>(shape_[0]), sample);
}

bool has_image_bytes(const NpyArray& samples) {
  const std::size_t axes = samples.extents().size();
  return samples.type().kind == 'u' && samples.type().bytes == 1 && (axes == 3 || axes == 4);
}

}  // namespace plexaura
