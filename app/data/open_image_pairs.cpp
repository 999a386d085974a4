#include "app/data/open_image_pairs.h"

#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "app/data/augmentation_keys.h"
#include "app/data/describe_data.h"
#include "app/data/prediction_data.h"
#include "core/base/error.h"
#include "core/base/fnv.h"
#include "models/zoo/model.h"
#include "training/data/images/image_pairs.h"
#include "training/data/subset.h"

namespace plexaura {

namespace {

namespace fs = std::filesystem;

void require_folder(const Section& data, const char* key, const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return;
  throw data.error(
      key, fmt::format("needs the folder {}, which is not there; with data.targets, the images are in "
                       "train and val of data.path, and their targets under the same names in train and val "
                       "of data.targets{}",
                       folder.string(),
                       folder.filename() == "val" ? "; or set data.validation_limit to 0, which turns "
                                                    "validation off"
                                                  : ""));
}

std::shared_ptr<ImagePairs> open_part(const Section& data, const DataOptions& options,
                                      const ImageFolderOptions& images,
                                      const std::optional<MaskOptions>& mask, const char* part) {
  require_folder(data, "path", options.path / part);
  require_folder(data, "targets", options.target_folder / part);
  return std::make_shared<ImagePairs>(options.path / part, options.target_folder / part, images, mask);
}

void keep(std::shared_ptr<ImagePairs>& pairs, std::span<const std::int64_t> indices) {
  pairs = std::make_shared<ImagePairs>(*pairs, indices);
}

std::vector<std::int64_t> alike(const ImagePairs& pairs) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(pairs.size()), 0);
}

// Returns the names of the classes of masks, "0" and so on. Targets that are images get one class "0", because --predict
// needs a list of classes in the weights.
std::vector<std::string> class_names(const std::optional<MaskOptions>& mask) {
  std::vector<std::string> names{"0"};
  for (std::int64_t i = 1; mask && i < mask->classes; ++i) names.push_back(std::to_string(i));
  return names;
}

std::optional<MaskOptions> mask_options(const Section& data, const Section& model, const DataOptions& options,
                                        const std::optional<TrainedData>& trained) {
  if (read_task(model) != Task::segmentation) return std::nullopt;
  const std::int64_t classes = *options.mask_classes;
  if (trained) require_mask_classes(data, options, *trained);
  if (balances_classes(model))
    throw model.error(
        "class_weights",
        "is balanced, which counts the samples of each class, and a mask has many classes; list "
        "the weights");
  const MaskOptions mask{.classes = classes, .ignored = read_model_keys(model).ignored_class};
  try {
    check_mask_operations(options.images, mask, mask_operation_names());
  } catch (const UserError& error) {
    throw data.error("augmentation", fmt::format("cannot be used: {}", error.what()));
  }
  return mask;
}

}  // namespace

std::vector<Key> image_target_keys(DataOptions& options) {
  const Need folder{.key = "format", .values = {"image_folder"}};
  return {
      {.name = "targets",
       .into = &options.target_folder,
       .needs = folder,
       .meaning =
           "with `model.task: segmentation` or `reconstruction`: the folder with the targets of the images, "
           "masks or images, under the same names in `train` and `val`. The images are then in `train` and "
           "`val` of `path`, without folders of classes "
           "([images with targets](../guide/images.md#images-with-targets-of-their-own))"},
      {.name = "classes",
       .into = &options.mask_classes,
       .range = {.minimum = 2, .maximum = 256},
       .needs = folder,
       .meaning = "with `model.task: segmentation`, which needs it: the number of classes; the pixels of "
                  "masks have smaller numbers, or `model.ignored_class`"},
  };
}

void require_mask_classes(const Section& data, const DataOptions& options, const TrainedData& trained) {
  if (!options.mask_classes || std::ssize(trained.classes) == *options.mask_classes) return;
  throw data.error("classes",
                   fmt::format("is {}, and the weights are of a model of {} classes; give that number",
                               *options.mask_classes, trained.classes.size()));
}

void check_image_targets(const Section& data, const DataOptions& options, DataUse use, Task task) {
  const bool has_targets = !options.target_folder.empty();
  if (task == Task::segmentation && options.format() != "image_folder")
    throw data.error("format", fmt::format("is {}, and model.task is segmentation, which needs folders of "
                                           "images and masks; set it to image_folder",
                                           options.format()));
  if (task == Task::segmentation && use != DataUse::predict) {
    if (!has_targets)
      throw data.error("targets",
                       "is missing, and model.task is segmentation; name the folder with the masks");
    if (!options.mask_classes)
      throw data.error("classes",
                       "is missing, and model.task is segmentation; give the number of classes of the pixels "
                       "in the masks");
  }
  if (task != Task::segmentation && options.mask_classes)
    data.refuse({"classes"}, fmt::format("model.task is {}", name_of(task)));
  if (!has_targets) return;
  if (task == Task::classification)
    throw data.error("targets",
                     "names images with targets of their own, and model.task is classification; set that to "
                     "segmentation or reconstruction, or remove it");
  data.refuse({"noise"}, "data.targets names the targets of the images");
  data.refuse({"folds", "fold", "validation_share", "split_seed"},
              "images with data.targets are in the folders train and val, which divide them");
}

RunData open_image_pairs(const Section& data, const Section& model, const DataOptions& options,
                         const std::optional<TrainedData>& trained) {
  constexpr std::uint64_t seed = 1;
  constexpr std::span<const std::int64_t> no_pairs;
  const std::optional<MaskOptions> mask = mask_options(data, model, options, trained);
  const ImageFolderOptions centred = without_augmentation(options.images);
  auto train = open_part(data, options, options.images, mask, "train");
  auto validation = options.validates() ? open_part(data, options, centred, mask, "val")
                                        : std::make_shared<ImagePairs>(*train, no_pairs);
  RunData found;
  found.origin = fnv_start;
  for (std::int64_t i = 0; i < train->size(); ++i) found.origin = fnv(train->name(i) + '\n', found.origin);
  found.origin = fnv(mask ? "masks" : "images", found.origin);
  if (options.use_fraction) keep(train, stratified_fraction(alike(*train), *options.use_fraction, seed));
  if (options.limit) keep(train, stratified_limit(alike(*train), *options.limit, seed));
  if (options.validates() && options.validation_limit)
    keep(validation, stratified_limit(alike(*validation), *options.validation_limit, seed));
  IgnoredFiles ignored = train->ignored();
  if (options.validates()) ignored += validation->ignored();
  found.pixels = pixel_scale_of(options.pixels, data);
  found.preparation = preparation_text(options.images, centred, found.pixels);
  found.read_samples = image_reader(centred);
  found.trained.classes = class_names(mask);
  found.outputs =
      mask ? fmt::format("0 to {}, of each pixel", mask->classes - 1) : "none, the targets are images";
  found.description =
      fmt::format("{} with {}, {} for validation, from {} and {}{}",
                  counted(train->size(), "image", "images"), mask ? "masks" : "targets", validation->size(),
                  options.path.string(), options.target_folder.string(), ignored_text(ignored));
  found.train = train;
  found.validation = validation;
  return found;
}

}  // namespace plexaura
