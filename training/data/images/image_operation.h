#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "training/data/images/image.h"
#include "training/data/random.h"

namespace plexaura {

// A mask of classes, which belongs to an image, while the image is augmented.
struct ClassMask {
  Image classes;             // all three channels of a pixel hold the number of its class
  std::uint8_t outside = 0;  // the class of pixels that come from outside of the image
};

// The effect of an ImageOperation on a mask of classes.
enum class MaskRule : std::uint8_t {
  refused,    // masks cannot follow: the operation does not report how it moves the pixels
  unchanged,  // the operation moves no pixels and only changes values
  moved,      // apply_to_mask() moves the pixels
  outside,    // as `moved`, and pixels from outside of the image may appear, which get ClassMask::outside
};

// A random change of an image, one step of augmentation. The subclasses are in training/data/augmentation. Thread-safe.
class ImageOperation {
 public:
  ImageOperation() = default;
  ImageOperation(const ImageOperation&) = delete;
  ImageOperation& operator=(const ImageOperation&) = delete;
  virtual ~ImageOperation();

  // Changes the image. The result is a function of the image and of the numbers that it draws from `random`.
  virtual void apply(Image& image, Random& random) const = 0;
  virtual MaskRule mask_rule() const { return MaskRule::refused; }
  // Changes the mask of an image as apply() changes the image if `random` has the same state: moves its pixels, without
  // interpolation. Operations with the rules `moved` and `outside` override it; throws UserError for others.
  virtual void apply_to_mask(ClassMask& mask, Random& random) const;
  // Returns the width and height of every result; nothing if the image keeps its size.
  virtual std::optional<std::int64_t> side() const { return std::nullopt; }
  // Returns the name in a configuration, such as "random_crop" or, for torchvision's RandomErasing, "erasing".
  virtual std::string_view name() const = 0;
};

// Operations in the order in which they are applied.
using ImageOperations = std::vector<std::shared_ptr<const ImageOperation>>;

// Returns the width and height after all operations; nothing if the image keeps its size.
std::optional<std::int64_t> side_after(const ImageOperations& operations);

}  // namespace plexaura
