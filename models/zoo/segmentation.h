#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/zoo/model.h"

namespace plexaura {

// The pixels of a batch as rows.
struct PixelRows {
  Node logits;  // [pixels, classes]
  Node labels;  // int64 [pixels]
};

// Returns the pixels of a segmentation.
//   outputs [N, classes, H, W] of the model; targets [N, H, W], the class of each pixel, uint8 or int64.
PixelRows pixel_rows(const Node& outputs, const Node& targets);

// Returns sums for "pixel_accuracy", the share of the pixels that get their class, and "mean_iou", the mean of
// class_ious() over the classes that occur. Pixels with the ignored label do not count. The sums are the numbers of pixels
// [classes + 1, classes], by their class, with ignored pixels in the last row, and by the class with the largest output.
ValidationSums segmentation_sums(const PixelRows& pixels, std::optional<std::int64_t> ignored);

// Returns for each class the intersection over union: the pixels that have and get the class, divided by those that have or
// get it; NaN if there are none. `totals`: of the sums of segmentation_sums().
std::vector<double> class_ious(std::span<const double> totals);

}  // namespace plexaura
