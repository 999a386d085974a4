#include "core/tensor/reorder_plan.h"

#include <algorithm>
#include <cstring>

namespace plexaura {

namespace {

constexpr std::size_t bytes_per_piece = 4096;

std::vector<std::vector<std::int64_t>> offsets_of(const Layout& layout, const Shape& shape) {
  return shape.rank() == 0 ? std::vector<std::vector<std::int64_t>>{{0}} : layout.axis_offsets(shape);
}

std::int64_t rows_of(const Shape& shape) {
  if (shape.elements() == 0) return 0;
  return shape.rank() == 0 ? 1 : shape.elements() / shape[shape.rank() - 1];
}

}  // namespace

ReorderPlan::ReorderPlan(const Layout& from, const Layout& to, const TensorType& type)
    : element_bytes_(size_of(type.dtype)),
      target_bytes_(static_cast<std::size_t>(to.bytes(type))),
      same_layout_(from == to),
      pads_(!same_layout_ && to.elements(type.shape) != type.shape.elements()),
      pieces_(rows_of(type.shape)) {
  if (same_layout_) {
    pieces_ = static_cast<std::int64_t>((target_bytes_ + bytes_per_piece - 1) / bytes_per_piece);
    return;
  }
  read_ = offsets_of(from, type.shape);
  write_ = offsets_of(to, type.shape);
}

void ReorderPlan::run(const std::byte* src, std::byte* dst) const {
  clear_padding(dst);
  copy_pieces(src, dst, 0, pieces_);
}

void ReorderPlan::clear_padding(std::byte* dst) const {
  if (pads_) std::memset(dst, 0, target_bytes_);
}

void ReorderPlan::copy_pieces(const std::byte* src, std::byte* dst, std::int64_t begin,
                              std::int64_t end) const {
  if (begin == end) return;
  if (same_layout_) {
    const std::size_t first = static_cast<std::size_t>(begin) * bytes_per_piece;
    const std::size_t last = std::min(static_cast<std::size_t>(end) * bytes_per_piece, target_bytes_);
    std::memcpy(dst + first, src + first, last - first);
    return;
  }
  switch (element_bytes_) {
    case 8:
      return copy_elements<std::uint64_t>(src, dst, begin, end);
    case 4:
      return copy_elements<std::uint32_t>(src, dst, begin, end);
    case 2:
      return copy_elements<std::uint16_t>(src, dst, begin, end);
    default:
      return copy_elements<std::uint8_t>(src, dst, begin, end);
  }
}

template <class Element>
void ReorderPlan::copy_elements(const std::byte* src, std::byte* dst, std::int64_t begin,
                                std::int64_t end) const {
  const auto* source = reinterpret_cast<const Element*>(src);
  auto* target = reinterpret_cast<Element*>(dst);
  const std::size_t last = read_.size() - 1;
  const auto& read_run = read_[last];
  const auto& write_run = write_[last];
  for (std::int64_t row = begin; row < end; ++row) {
    std::int64_t rest = row;
    std::int64_t read_base = 0;
    std::int64_t write_base = 0;
    for (std::size_t axis = last; axis-- > 0;) {
      const auto extent = static_cast<std::int64_t>(read_[axis].size());
      const auto index = static_cast<std::size_t>(rest % extent);
      rest /= extent;
      read_base += read_[axis][index];
      write_base += write_[axis][index];
    }
    for (std::size_t i = 0; i < read_run.size(); ++i)
      target[write_base + write_run[i]] = source[read_base + read_run[i]];
  }
}

}  // namespace plexaura
