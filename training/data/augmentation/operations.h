#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "training/data/augmentation/functional.h"
#include "training/data/images/crop.h"
#include "training/data/images/image_operation.h"

// The random operations of augmentation, with the names, options and distributions of torchvision.transforms. The random
// numbers differ. Constructors throw UserError for an option that is not permitted.
namespace plexaura::augmentation {

// The range of a random number, from low to high.
struct Span {
  double low = 0;
  double high = 0;

  double draw(Random& random) const { return random.uniform(low, high); }
};

// Check an option and return it. Throw UserError that names the operation.
double checked_probability(std::string_view operation, double p);
std::int64_t checked_side(std::string_view operation, std::int64_t side);
// Returns the span. Throws UserError unless it is within [least, most].
Span checked_span(std::string_view operation, std::string_view option, Span span, double least, double most);

// RandomResizedCrop: cuts out a part of random area (uniform, as a share of the image's), aspect ratio (width
// / height, log-uniform) and position and scales it to `size` pixels on both sides, with antialiased bilinear
// interpolation.
class RandomResizedCrop final : public ImageOperation {
 public:
  struct Options {
    std::int64_t size = 224;
    Span scale = {0.08, 1};
    Span ratio = {3.0 / 4.0, 4.0 / 3.0};
  };
  explicit RandomResizedCrop(const Options& options);
  void apply(Image& image, Random& random) const override;
  void apply_to_mask(ClassMask& mask, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::moved; }
  std::optional<std::int64_t> side() const override { return options_.size; }
  std::string_view name() const override { return "random_resized_crop"; }

 private:
  Crop drawn_crop(const Image& image, Random& random) const;

  Options options_;
};

// RandomCrop: adds `padding` pixels of a colour on each side, and takes a part of `size` pixels at a random position. An
// image that is smaller is padded further, in equal parts on both sides, as with torchvision's pad_if_needed.
class RandomCrop final : public ImageOperation {
 public:
  struct Options {
    std::int64_t size = 224;
    std::int64_t padding = 0;
    Colour fill{};
  };
  explicit RandomCrop(const Options& options);
  void apply(Image& image, Random& random) const override;
  void apply_to_mask(ClassMask& mask, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::outside; }
  std::optional<std::int64_t> side() const override { return options_.size; }
  std::string_view name() const override { return "random_crop"; }

 private:
  Image cropped(const Image& image, Colour fill, Random& random) const;

  Options options_;
};

// Scales the shorter side to `resize` pixels and cuts out the centre: Resize(resize), and CenterCrop(size)
// with a size that is not larger.
class ResizedCentreCrop final : public ImageOperation {
 public:
  struct Options {
    std::int64_t size = 224;
    std::int64_t resize = 256;
  };
  explicit ResizedCentreCrop(const Options& options);
  void apply(Image& image, Random& random) const override;
  void apply_to_mask(ClassMask& mask, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::moved; }
  std::optional<std::int64_t> side() const override { return options_.size; }
  std::string_view name() const override { return "center_crop"; }

 private:
  Options options_;
};

// Mirrors the image horizontally with probability p, as RandomHorizontalFlip.
class HorizontalFlip final : public ImageOperation {
 public:
  explicit HorizontalFlip(double p);
  void apply(Image& image, Random& random) const override;
  void apply_to_mask(ClassMask& mask, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::moved; }
  std::string_view name() const override { return "horizontal_flip"; }

 private:
  double p_;
};

// Mirrors the image vertically with probability p, as RandomVerticalFlip.
class VerticalFlip final : public ImageOperation {
 public:
  explicit VerticalFlip(double p);
  void apply(Image& image, Random& random) const override;
  void apply_to_mask(ClassMask& mask, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::moved; }
  std::string_view name() const override { return "vertical_flip"; }

 private:
  double p_;
};

// Rotates by a random angle from -degrees to degrees, as RandomRotation.
class RandomRotation final : public ImageOperation {
 public:
  struct Options {
    double degrees = 0;
    Interpolation interpolation = Interpolation::nearest;
    Colour fill{};
  };
  explicit RandomRotation(const Options& options);
  void apply(Image& image, Random& random) const override;
  void apply_to_mask(ClassMask& mask, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::outside; }
  std::string_view name() const override { return "rotation"; }

 private:
  Options options_;
};

// RandomAffine: rotates by an angle from -degrees to degrees, moves by up to a share of the width and of the height,
// scales, and shears along both axes.
class RandomAffine final : public ImageOperation {
 public:
  struct Options {
    double degrees = 0;
    std::array<double, 2> translate{};  // largest shifts, as shares of the width and of the height
    Span scale = {1, 1};
    Span shear_x{};  // angles in degrees
    Span shear_y{};
    Interpolation interpolation = Interpolation::nearest;
    Colour fill{};
  };
  explicit RandomAffine(const Options& options);
  void apply(Image& image, Random& random) const override;
  void apply_to_mask(ClassMask& mask, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::outside; }
  std::string_view name() const override { return "affine"; }

 private:
  Image moved(const Image& image, Interpolation interpolation, Colour fill, Random& random) const;

  Options options_;
};

// ColorJitter: multiplies brightness, contrast and saturation by factors from max(0, 1 - x) to 1 + x, and turns the hue by
// a share of the colour circle from -hue to hue, in random order.
class ColorJitter final : public ImageOperation {
 public:
  struct Options {
    double brightness = 0;
    double contrast = 0;
    double saturation = 0;
    double hue = 0;  // share of the colour circle, at most 0.5
  };
  explicit ColorJitter(const Options& options);
  void apply(Image& image, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::unchanged; }
  std::string_view name() const override { return "color_jitter"; }

 private:
  Options options_;
};

// Makes the image grey with probability p, as RandomGrayscale.
class RandomGrayscale final : public ImageOperation {
 public:
  explicit RandomGrayscale(double p);
  void apply(Image& image, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::unchanged; }
  std::string_view name() const override { return "grayscale"; }

 private:
  double p_;
};

// Blurs the image with probability p and a random sigma, as GaussianBlur(kernel_size, sigma).
class RandomGaussianBlur final : public ImageOperation {
 public:
  struct Options {
    std::int64_t kernel_size = 3;  // size in pixels, odd
    Span sigma = {0.1, 2};
    double p = 1;
  };
  explicit RandomGaussianBlur(const Options& options);
  // Throws UserError for an image that is too small for the kernel.
  void apply(Image& image, Random& random) const override;
  MaskRule mask_rule() const override { return MaskRule::unchanged; }
  std::string_view name() const override { return "gaussian_blur"; }

 private:
  Options options_;
};

// RandomErasing: replaces a rectangle of random area (as a share of the image's), aspect ratio (height / width,
// log-uniform) and position by a colour, or by random values.
class RandomErasing final : public ImageOperation {
 public:
  struct Options {
    double p = 0.5;
    Span scale = {0.02, 0.33};
    Span ratio = {0.3, 3.3};
    std::optional<Colour> value = Colour{};  // std::nullopt: random values, which are uniformly distributed
  };
  explicit RandomErasing(const Options& options);
  void apply(Image& image, Random& random) const override;
  std::string_view name() const override { return "erasing"; }

 private:
  Options options_;
};

// TrivialAugmentWide: one of 14 operations, with a random strength.
class TrivialAugmentWide final : public ImageOperation {
 public:
  struct Options {
    std::int64_t num_magnitude_bins = 31;
    Interpolation interpolation = Interpolation::nearest;
    Colour fill{};
  };
  explicit TrivialAugmentWide(const Options& options);
  void apply(Image& image, Random& random) const override;
  std::string_view name() const override { return "trivial_augment_wide"; }

 private:
  Options options_;
};

// RandAugment: `num_ops` of 14 operations, one after the other, each with the same strength.
class RandAugment final : public ImageOperation {
 public:
  struct Options {
    std::int64_t num_ops = 2;
    std::int64_t magnitude = 9;  // below num_magnitude_bins
    std::int64_t num_magnitude_bins = 31;
    Interpolation interpolation = Interpolation::nearest;
    Colour fill{};
  };
  explicit RandAugment(const Options& options);
  void apply(Image& image, Random& random) const override;
  std::string_view name() const override { return "rand_augment"; }

 private:
  Options options_;
};

}  // namespace plexaura::augmentation
