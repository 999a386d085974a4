#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "training/data/images/image.h"
#include "training/data/random.h"

namespace plexaura {

// A random change of an image, one step of augmentation. The subclasses are in training/data/augmentation. Thread-safe.
class ImageOperation {
 public:
  ImageOperation() = default;
  ImageOperation(const ImageOperation&) = delete;
  ImageOperation& operator=(const ImageOperation&) = delete;
  virtual ~ImageOperation();

  // Changes the image. The result is a function of the image and of the numbers that it draws from `random`.
  virtual void apply(Image& image, Random& random) const = 0;
  // Returns the width and height of every result; nothing if the image keeps its size.
  virtual std::optional<std::int64_t> side() const { return std::nullopt; }
  // Returns the name in a configuration, which is that of torchvision's transform.
  virtual std::string_view name() const = 0;
};

// Operations in the order in which they are applied.
using ImageOperations = std::vector<std::shared_ptr<const ImageOperation>>;

// Returns the width and height after all operations; nothing if the image keeps its size.
std::optional<std::int64_t> side_after(const ImageOperations& operations);

}  // namespace plexaura
