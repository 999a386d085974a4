#include "testing/padding.h"

#include <algorithm>
#include <fmt/format.h>

#include "core/device/transfer.h"
#include "core/graph/print.h"

namespace plexaura::testing {

bool padding_is_zero(Backend& backend, Address address, const Layout& layout, const TensorType& type) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.bytes(type)));
  copy_to_host(backend, bytes.data(), address, bytes.size());
  // The mask, a value with the same layout, has ones at the elements and zeros in the padding.
  const TensorType marked{DType::uint8, type.shape};
  Tensor ones(marked);
  std::ranges::fill(ones.as<std::uint8_t>(), std::uint8_t{1});
  std::vector<std::byte> mask(static_cast<std::size_t>(layout.bytes(marked)));
  reorder(ones.data(), Layout::row_major(type.shape.rank()), mask.data(), layout, marked);
  const std::size_t element = size_of(type.dtype);
  for (std::size_t i = 0; i < mask.size(); ++i)
    for (std::size_t k = 0; k < element; ++k)
      if (mask[i] == std::byte{0} && bytes[i * element + k] != std::byte{0}) return false;
  return true;
}

PaddingReport check_padding(const Program& program, const Workspace& workspace, Backend& backend) {
  PaddingReport report;
  const auto look_at = [&](const Slot& slot, const std::string& maker) {
    if (slot.place.space != Place::Space::arena) return;
    ++report.values;
    report.padded += slot.layout.elements(slot.type.shape) > slot.type.shape.elements();
    if (!padding_is_zero(backend, workspace.address() + slot.place.offset, slot.layout, slot.type))
      report.failures +=
          fmt::format("  {}: {} of {} has something in its padding in layout {}\n", maker,
                      to_string(slot.type), name_of(*program.graph, slot.value.node), to_string(slot.layout));
  };
  for (const Instruction& instruction : program.instructions)
    for (const auto& output : instruction.outputs)
      if (output) look_at(*output, instruction.name + " [" + instruction.implementation + "]");
  return report;
}

}  // namespace plexaura::testing
