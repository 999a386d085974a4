#include "core/params/placement.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "core/error.h"

namespace plexaura {

namespace {

constexpr std::int64_t granule = 16;  // elements: 64 bytes of float32, a cache line

std::int64_t rounded(std::int64_t count) { return (count + granule - 1) / granule * granule; }

DType parse_dtype(std::string_view name) {
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16})
    if (name_of(dtype) == name) return dtype;
  throw InternalError(fmt::format("a placement names the dtype '{}'", name));
}

InternalError damaged() { return InternalError("a placement's text is damaged"); }

std::vector<std::int64_t> read_list(std::istream& in) {
  std::size_t size = 0;
  in >> size;
  if (!in || size > 64) throw damaged();
  std::vector<std::int64_t> numbers(size);
  for (std::int64_t& number : numbers) in >> number;
  return numbers;
}

std::string list_text(const std::vector<std::int64_t>& numbers) {
  return fmt::format("{} {}", numbers.size(), fmt::join(numbers, " "));
}

}  // namespace

void Placement::append(std::string name, TensorType type, ParameterRole role, Layout layout) {
  if (type.dtype != dtype)
    throw UserError(
        fmt::format("the parameter '{}' is {} in a store of {}; all parameters of a model have one dtype",
                    name, name_of(type.dtype), name_of(dtype)));
  if (!entries.empty() && entries.back().role > role)
    throw InternalError("a placement holds trainables, then buffers, then frozen parameters");
  const std::int64_t offset = entries.empty() ? 0 : entries.back().offset + entries.back().count;
  const std::int64_t count = rounded(layout.elements(type.shape));
  entries.push_back({std::move(name), std::move(type), role, std::move(layout), offset, count});
}

const Placement::Entry* Placement::find(std::string_view name) const {
  const auto found = std::ranges::find(entries, name, &Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

std::int64_t Placement::count(ParameterRole role) const {
  std::int64_t total = 0;
  for (const Entry& entry : entries)
    if (entry.role == role) total += entry.count;
  return total;
}

std::int64_t Placement::value_count() const {
  return entries.empty() ? 0 : entries.back().offset + entries.back().count;
}

std::int64_t Placement::tail_offset() const {
  return count(ParameterRole::trainable) + count(ParameterRole::buffer);
}

std::int64_t Placement::gradient_count() const { return tail_offset() + tail_count; }

std::string to_text(const Placement& placement) {
  std::string text = fmt::format("{} {}\n", name_of(placement.dtype), placement.entries.size());
  for (const Placement::Entry& entry : placement.entries) {
    std::vector<std::int64_t> blocks;
    for (const Layout::Block& block : entry.layout.blocks())
      blocks.insert(blocks.end(), {block.axis, block.size});
    text += fmt::format("{} {} {} {} {}\n", entry.name, static_cast<int>(entry.role),
                        list_text(entry.type.shape.extents()), list_text(entry.layout.order()),
                        list_text(blocks));
  }
  return text;
}

Placement parse_placement(std::string_view text) {
  std::istringstream in{std::string(text)};
  Placement placement;
  std::string word;
  std::size_t entries = 0;
  in >> word >> entries;
  placement.dtype = parse_dtype(word);
  for (; entries > 0; --entries) {
    int role = -1;
    in >> word >> role;
    std::vector<std::int64_t> extents = read_list(in);
    std::vector<std::int64_t> order = read_list(in);
    const std::vector<std::int64_t> numbers = read_list(in);
    const bool sound = in && role >= 0 && role <= static_cast<int>(ParameterRole::frozen) &&
                       order.size() == extents.size() &&
                       std::ranges::all_of(extents, [](std::int64_t extent) { return extent >= 0; });
    if (!sound) throw damaged();
    Shape shape(std::move(extents));
    std::vector<Layout::Block> blocks;
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {
      if (numbers[i] < 0 || numbers[i] >= shape.rank() || numbers[i + 1] < 1) throw damaged();
      blocks.push_back({numbers[i], numbers[i + 1]});
    }
    placement.append(word, {placement.dtype, std::move(shape)}, static_cast<ParameterRole>(role),
                     Layout(std::move(order), std::move(blocks)));
  }
  return placement;
}

std::vector<Bucket> make_buckets(const Placement& placement, std::int64_t bytes) {
  const std::int64_t least =
      std::max<std::int64_t>(bytes / static_cast<std::int64_t>(size_of(placement.dtype)), 1);
  std::vector<Bucket> buckets;
  Bucket open;
  for (const Placement::Entry& entry : placement.entries) {
    if (entry.role != ParameterRole::trainable) break;
    open.count += entry.count;
    if (open.count >= least) {
      buckets.push_back(open);
      open = {entry.offset + entry.count, 0};
    }
  }
  if (open.count > 0) buckets.push_back(open);
  const std::int64_t trainables = placement.count(ParameterRole::trainable);
  buckets.push_back({trainables, placement.gradient_count() - trainables});
  return buckets;
}

}  // namespace plexaura
