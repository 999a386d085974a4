#include "backends/cpu/fast/padding_eraser.h"

#include <cstring>

#include "backends/cpu/fast/parallel.h"

namespace plexaura::fast {

namespace {

constexpr double nanoseconds_per_run = 2;  // time to clear a few neighbours

}  // namespace

PaddingEraser::PaddingEraser(const Layout& layout, const TensorType& type) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(type.dtype));
  auto offsets = layout.axis_offsets(layout.padded(type.shape));
  for (auto& along : offsets)
    for (std::int64_t& offset : along) offset *= element_bytes;
  for (std::size_t axis = 0; axis < offsets.size(); ++axis) {
    const auto extent = static_cast<std::size_t>(type.shape[static_cast<std::int64_t>(axis)]);
    if (offsets[axis].size() == extent) continue;
    Band band;
    for (std::size_t index = extent; index < offsets[axis].size(); ++index)
      append(band.runs, {offsets[axis][index], element_bytes});
    for (std::size_t other = 0; other < offsets.size(); ++other)
      if (other != axis) band.corners.push_back(offsets[other]);
    if (band.corners.empty()) band.corners.push_back({0});
    for (std::size_t i = 0; i + 1 < band.corners.size(); ++i)
      band.rows *= static_cast<std::int64_t>(band.corners[i].size());
    bands_.push_back(std::move(band));
  }
}

void PaddingEraser::append(std::vector<Run>& runs, Run run) {
  if (!runs.empty() && runs.back().begin + runs.back().bytes == run.begin)
    runs.back().bytes += run.bytes;
  else
    runs.push_back(run);
}

void PaddingEraser::erase(std::byte* data) const {
  for (const Band& band : bands_) band.erase(data);
}

void PaddingEraser::Band::erase(std::byte* data) const {
  const auto runs_of_row = static_cast<double>(runs.size() * corners.back().size());
  parallel_pieces(rows, nanoseconds_per_run * runs_of_row, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) erase_row(data, row);
  });
}

void PaddingEraser::Band::erase_row(std::byte* data, std::int64_t row) const {
  for (std::size_t axis = corners.size() - 1; axis-- > 0;) {
    const auto extent = static_cast<std::int64_t>(corners[axis].size());
    data += corners[axis][static_cast<std::size_t>(row % extent)];
    row /= extent;
  }
  for (const std::int64_t corner : corners.back())
    for (const Run& run : runs)
      std::memset(data + corner + run.begin, 0, static_cast<std::size_t>(run.bytes));
}

}  // namespace plexaura::fast
