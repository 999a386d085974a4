#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/zoo/model.h"

namespace plexaura {

// The pixels of a batch, each as a row.
struct PixelRows {
  Node logits;  // [pixels, classes]
  Node labels;  // int64 [pixels]
};

// Returns the pixels of a segmentation as rows, in the order of [N, H, W].
//   outputs [N, classes, H, W] of the model; targets [N, H, W], the class of each pixel, uint8 or int64.
PixelRows pixel_rows(const Node& outputs, const Node& targets);

// Returns sums for "pixel_accuracy", the share of the pixels whose class has the largest output, and "mean_iou", the mean
// of class_ious() over the classes that occur and are not ignored. Pixels with the ignored label do not count. The sums are
// row-major [classes + 1, classes]: element [i, j] counts the pixels of class i whose largest output is j, and row
// `classes` counts the ignored pixels.
ValidationSums segmentation_sums(const PixelRows& pixels, std::optional<std::int64_t> ignored);

// Returns the intersection over union of each class: the number of pixels that have the class and are
// predicted as it, divided by the number of pixels that have the class or are predicted as it. It is NaN if
// there are no such pixels, and for the ignored class. `totals` are the sums of segmentation_sums(), added up
// over batches.
std::vector<double> class_ious(std::span<const double> totals, std::optional<std::int64_t> ignored);

}  // namespace plexaura
