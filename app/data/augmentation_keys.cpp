#include "app/data/augmentation_keys.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string>

#include "app/data/augmentation_rows.h"
#include "core/base/error.h"

namespace plexaura {

namespace {

// A size of samples for callers that use only the names and texts of operations, which do not depend on the size.
constexpr std::int64_t any_size = 224;

const OperationRow& operation_of(const Section& element) {
  const OperationRow* found = nullptr;
  for (const OperationRow& row : operation_rows()) {
    if (!element.has(row.name)) continue;
    if (found != nullptr)
      throw element.error(
          row.name, fmt::format("and {} are in one element; give each operation an element of its own, which "
                                "begins with a dash",
                                found->name));
    found = &row;
  }
  if (found != nullptr) return *found;
  element.check_all_used();  // suggests a name if one is misspelt
  throw UserError(fmt::format("{}: {} names no operation; give one, such as horizontal_flip: 0.5",
                              to_string(element.position()), element.path()));
}

// Errors of operations begin with the operation's name.
std::string without_name(std::string error, const std::string& name) {
  if (error.starts_with(name + ": ")) error.erase(0, name.size() + 2);
  return error;
}

}  // namespace

ImageOperations read_augmentation(const Section& data, const std::vector<Section>& list,
                                  std::int64_t image_size) {
  if (list.empty())
    throw data.error("augmentation", "is empty; list operations, or set data.augment to false");
  ImageOperations operations;
  for (const Section& element : list) {
    const OperationRow& row = operation_of(element);
    const OperationReader reader = row.open(image_size);
    read_keys(element, reader.keys);
    try {
      operations.push_back(reader.make());
    } catch (const UserError& error) {
      throw element.error(row.name, "cannot be used: " + without_name(error.what(), row.name));
    }
  }
  if (const auto side = side_after(operations); side && *side != image_size)
    throw data.error(
        "augmentation",
        fmt::format("produces images of {0}x{0} pixels, and data.image_size is {1}; give both the same size",
                    *side, image_size));
  return operations;
}

std::vector<std::string> mask_operation_names() {
  std::vector<std::string> names;
  for (const OperationRow& row : operation_rows())
    if (row.open(any_size).make()->mask_rule() != MaskRule::refused) names.push_back(row.name);
  return names;
}

std::vector<KeyText> augmentation_key_texts() {
  std::vector<KeyText> texts;
  for (const OperationRow& row : operation_rows()) {
    const OperationReader reader = row.open(any_size);
    std::ranges::move(texts_of("data.augmentation[]", reader.keys), std::back_inserter(texts));
  }
  return texts;
}

}  // namespace plexaura
