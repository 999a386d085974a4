#include "app/data/data_options.h"

#include <fmt/format.h>

#include "app/data/augmentation_keys.h"
#include "app/data/open_image_pairs.h"
#include "app/data/table_keys.h"

namespace plexaura {

namespace {

// Checks the keys that only some tasks have.
void check_task(const Section& data, const DataOptions& options, DataUse use, Task task) {
  const bool is_text = options.format() == "text";
  if (is_text != (task == Task::language_model))
    throw data.error("format",
                     fmt::format("is {}, and model.task is {}; set {}", options.format(), name_of(task),
                                 is_text ? "model.task to language_model, or name the format of other data"
                                         : "it to text, or set another task"));
  check_image_targets(data, options, use, task);
  if (task == Task::segmentation) return;
  if (task == Task::reconstruction) {
    if (options.format() != "idx" && options.format() != "cifar" && options.format() != "image_folder")
      throw data.error("format",
                       fmt::format("is {}, and model.task is reconstruction, which is for images; give "
                                   "images (idx, cifar or image_folder), or set another task",
                                   options.format()));
    return;
  }
  if (task == Task::classification) {
    if (options.targets)
      throw data.error("targets",
                       "has no effect here, because model.task is classification; set that to regression or "
                       "multi_label, or name the column of the classes in data.label");
    return;
  }
  if (task == Task::language_model) return;
  // Keys of arrays name the targets, and shards contain them.
  if (options.has_arrays() || options.format() == "shards") return;
  if (options.format() != "csv")
    throw data.error(
        "format",
        fmt::format("is {}, whose samples have classes, and model.task is {}; give a "
                    "table (csv), arrays (npy, npz, hdf5) or shards, or set model.task to classification",
                    options.format(), name_of(task)));
  data.refuse({"label", "missing_is_class"},
              fmt::format("model.task is {} and data.targets names the columns to predict", name_of(task)));
  if (!options.targets || options.targets->empty())
    throw data.error("targets",
                     fmt::format("is {}, and model.task is {}; list the columns of the {}",
                                 options.targets ? "empty" : "missing", name_of(task),
                                 task == Task::regression ? "numbers to predict, for example [price]"
                                                          : "labels, for example [sweet, sour]"));
  if (task == Task::multi_label)
    data.refuse({"standardise_targets"}, "model.task is multi_label, whose targets are 0 or 1");
}

// Returns the keys of rows of numbers.
std::vector<Key> row_keys(DataOptions& options) {
  return {
      {.name = "standardise",
       .into = &options.standardise,
       .meaning = "scales each feature column to (value − mean) / standard deviation, both taken over the "
                  "training rows"},
  };
}

// Returns the keys of samples without a validation set of their own.
std::vector<Key> split_keys(DataOptions& options, DataUse use) {
  return {
      {.name = "folds",
       .into = &options.folds,
       .range = {.minimum = 2},
       .meaning = "number of folds for cross-validation, instead of `validation_share`; at most the number "
                  "of samples. Images with `targets` have no folds"},
      {.name = "fold",
       .into = &options.fold,
       .range = {.minimum = 0},
       .most = [&options] { return static_cast<double>(*options.folds - 1); },
       .needs = {.key = "folds"},
       .meaning = "the fold to validate on, from 0; every class must have a sample in the others"},
      {.name = "validation_share",
       .into = &options.validation_share,
       .range = trains(use) ? NumberRange{.minimum = 0, .below = 1} : NumberRange{.minimum = 0, .maximum = 1},
       .meaning = "fraction of the samples held out for validation, stratified by class; 0 turns validation "
                  "off. Every class must keep a sample to train on; with `--evaluate`, 1 takes all rows "
                  "([using_a_model.md](../guide/using_a_model.md#predicting)). Images of an `image_folder` "
                  "are divided only if this key or `folds` is given, and are then in `data.path`/CLASS; "
                  "those with `targets` are not"},
      {.name = "split_seed",
       .into = &options.split_seed,
       .range = {.minimum = 0},
       .meaning = "seed of the choice of held-out samples"},
  };
}

std::vector<Key> text_keys(DataOptions& options, DataUse use) {
  TextOptions& text = options.text;
  return {
      {.name = "tokens",
       .into = one_of(
           text.tokens,
           {{"bytes", TokenKind::bytes}, {"characters", TokenKind::characters}, {"words", TokenKind::words}}),
       .meaning = "what a text consists of: bytes; characters of UTF-8; or words, which are runs of letters, "
                  "digits and "
                  "`_`, or any other single character, each with a blank that stands before it"},
      {.name = "sequence_length",
       .into = &text.sequence_length,
       .range = {.minimum = 1, .maximum = 1 << 20},
       .required = true,
       .meaning = "number of tokens of a sample, a window of the text; the model predicts the token after "
                  "each of them"},
      {.name = "stride",
       .into = &text.stride,
       .range = {.minimum = 1},
       .most = [&text] { return static_cast<double>(text.sequence_length); },
       .late_default = {.set = [&text] { text.stride = text.sequence_length; }},
       .meaning = "distance of the beginnings of two windows to train on; by default `sequence_length`, so "
                  "that an epoch "
                  "predicts each token once, as validation always does"},
      {.name = "minimum_count",
       .into = &text.minimum_count,
       .range = {.minimum = 1},
       .needs = {.key = "tokens", .values = {"characters", "words"}},
       .meaning = "a character or word that occurs less often in the text to train on is replaced by the "
                  "token `<unk>`"},
      {.name = "extension",
       .into = &text.extension,
       .meaning = "the end of the names of files to read if `path` or `validation_path` is a folder"},
      {.name = "validation_path",
       .into = &text.validation_path,
       .meaning = "a file or folder with a text to validate on, instead of `validation_share`"},
      {.name = "validation_share",
       .into = &text.validation_share,
       .range = trains(use) ? NumberRange{.minimum = 0, .below = 1} : NumberRange{.minimum = 0, .maximum = 1},
       .meaning = "fraction of each file, its end, that is held out for validation; 0 turns validation off"},
  };
}

std::vector<Key> idx_keys(DataOptions& options) {
  return {{.name = "classes",
           .into = &options.idx.classes,
           .range = {.minimum = 2, .maximum = 1'000'000},
           .meaning = "number of classes; labels must be smaller"}};
}

std::vector<Key> cifar_keys(DataOptions& options) {
  return {
      {.name = "cifar_labels",
       .into = one_of(options.cifar_labels, {{"fine", CifarLabels::fine}, {"coarse", CifarLabels::coarse}}),
       .meaning = "the labels of CIFAR-100: 100 classes, or 20 groups of five classes each"}};
}

std::vector<Key> array_keys(DataOptions& options) {
  const Need validation{.key = "validation_samples"};
  return {
      {.name = "samples",
       .into = &options.arrays.samples,
       .meaning = "the array of the samples: the file NAME.npy in the folder, the member NAME of the npz "
                  "file, or the dataset NAME of the HDF5 file. "
                  "Its first axis counts the samples"},
      {.name = "labels",
       .into = &options.arrays.labels,
       .meaning =
           "the array of the labels, whole numbers or text; with `model.task: regression` or `multi_label`, "
           "the array of the targets, which always are numbers"},
      {.name = "validation_samples",
       .into = &options.arrays.validation_samples,
       .meaning =
           "the array of the validation samples; without it `validation_share` or `folds` choose some of the "
           "samples"},
      {.name = "validation_labels",
       .into = &options.arrays.validation_labels,
       .needs = validation,
       .meaning = "the array of their labels or targets"},
      {.name = "channels",
       .into = &options.channels,
       .words = {"first", "last"},
       .meaning =
           "required for samples with four axes: whether the channels of images are the `first` axis after "
           "that of the samples, or the `last`"},
  };
}

std::vector<Key> image_keys(DataOptions& options) {
  const Need augment{.key = "augment", .values = {"true"}};
  return {
      {.name = "image_size",
       .into = &options.images.image_size,
       .range = {.minimum = 1, .maximum = 4096},
       .meaning = "width and height of a sample in pixels"},
      {.name = "resize_size",
       .into = &options.images.resize_size,
       .range = {.minimum = 1, .maximum = 65536},
       .meaning =
           "pixels to which the shorter side of an image is scaled before the centre is taken; at least "
           "`image_size`; by default `image_size` * 256 / 224, rounded"},
      {.name = "augment",
       .into = &options.images.augment,
       .meaning = "trains on random crops with random horizontal flips, or on what `augmentation` lists"},
      {.name = "augmentation",
       .into = &options.augmentation,
       .needs = augment,
       .meaning = "the operations of [augmentation](augmentation.md) in their order, instead of random crops "
                  "and flips"},
      {.name = "min_crop_scale",
       .into = &options.images.min_crop_scale,
       .range = {.maximum = 1, .above = 0},
       .needs = augment,
       .meaning = "the smallest fraction of the image's area that a crop may cover"},
      {.name = "horizontal_flip",
       .into = &options.images.horizontal_flip,
       .needs = augment,
       .meaning = "flips each sample horizontally with probability 1/2"},
  };
}

void complete_images(const Section& data, DataOptions& options) {
  ImageFolderOptions& images = options.images;
  if (shorter_side_of(images) < images.image_size)
    throw data.error("resize_size",
                     fmt::format("is {}, and {} pixels are taken from the centre, as data.image_size says; "
                                 "give at least that many",
                                 *images.resize_size, images.image_size));
  if (!data.has("augmentation") || !images.augment) return;
  data.refuse({"min_crop_scale", "horizontal_flip"}, "data.augmentation lists what is done to an image");
  images.operations = read_augmentation(data, options.augmentation, images.image_size);
}

std::vector<Key> mix_keys(DataOptions& options) {
  const Need images{.key = "format",
                    .values = {"idx", "cifar", "image_folder", "npy", "npz", "hdf5", "shards"}};
  const NumberRange strength{.minimum = 0, .maximum = 1000};
  return {
      {.name = "mixup_alpha",
       .into = &options.mix.mixup_alpha,
       .range = strength,
       .needs = images,
       .meaning =
           "`MixUp(alpha)`: each training image becomes the weighted mean of two, whose labels get the same "
           "weights ([mixing](augmentation.md#mixing-images)); 0: off"},
      {.name = "cutmix_alpha",
       .into = &options.mix.cutmix_alpha,
       .range = strength,
       .needs = images,
       .meaning = "`CutMix(alpha)`: a rectangle of each training image is that of another one; 0: off. With "
                  "`mixup_alpha`, each step uses one of both at random"}};
}

Key noise_key(DataOptions& options) {
  return {
      .name = "noise",
      .into = &options.noise,
      .range = {.minimum = 0, .maximum = 1},
      .needs = {.key = "format", .values = {"idx", "cifar", "image_folder"}},
      .meaning =
          "with `model.task: reconstruction`: the model reads images with noise, in training and "
          "validation, and the target is the image without it ([denoising](../guide/images.md#denoising)). "
          "The noise is normally distributed with this standard deviation, on a scale where a pixel goes "
          "from 0 to 1. 0: no noise"};
}

// Appends keys. A key that depends on no other key gets a condition: it has an effect only if `format` is one of `formats`.
void append(std::vector<Key>& keys, std::vector<Key> more, const std::vector<std::string>& formats = {}) {
  for (Key& key : more) {
    if (!formats.empty() && key.needs.key.empty()) key.needs = {.key = "format", .values = formats};
    keys.push_back(std::move(key));
  }
}

// Switches off all options with which a sample differs from epoch to epoch.
void keep_samples_the_same(DataOptions& options) {
  options.images.augment = false;
  options.images.operations.clear();
  options.mix = {};
  options.noise = 0;
  options.sampling = "once";
}

}  // namespace

std::vector<Key> data_keys(DataOptions& options, DataUse use) {
  std::vector<Key> keys{
      {.name = "format",
       .into = &options.pixels.format,
       .words = {"csv", "npy", "npz", "hdf5", "idx", "cifar", "image_folder", "shards", "text"},
       .required = true,
       .meaning = "the format of the data"},
      {.name = "path",
       .into = &options.path,
       .required = use != DataUse::predict,
       .meaning = "with `scatter-gather` only on rank 0: the CSV file; the folder with the arrays, or their "
                  "npz or HDF5 file; the folder with MNIST's four files, plain or gzipped; the folder with "
                  "the binary version of CIFAR-10 or CIFAR-100; the folder with packed shards; the folder "
                  "with "
                  "`train/CLASS/` and `val/CLASS/`; or the file or folder with the text"},
      {.name = "use_fraction",
       .into = &options.use_fraction,
       .range = {.maximum = 1, .above = 0},
       .meaning = "fraction of the training samples to use, stratified by class; every class must keep one"},
      {.name = "limit",
       .into = &options.limit,
       .range = {.minimum = 1},
       .meaning = "maximum number of training samples, stratified by class; every class must keep one"},
      {.name = "sampling",
       .into = &options.sampling,
       .words = {"once", "balanced", "weighted"},
       .meaning = "`once`: each training sample comes once in an epoch. `balanced`: as many samples are "
                  "drawn at random, with replacement, each class as often as the others. `weighted`: "
                  "likewise, each class in proportion to `sampling_weights`. So with the last two a sample "
                  "may come several times in an epoch, or "
                  "not at all"},
      {.name = "sampling_weights",
       .into = &options.sampling_weights,
       .range = {.minimum = 0, .maximum = 1'000'000},
       .required = true,
       .needs = {.key = "sampling", .values = {"weighted"}},
       .meaning = "a number for each class, in the order in which a run lists them"},
      {.name = "validation_limit",
       .into = &options.validation_limit,
       .range = {.minimum = 0},
       .meaning = "maximum number of validation samples, stratified by class; 0 turns validation off"},
  };
  append(keys, table_keys(options), {"csv"});
  append(keys, row_keys(options), {"csv", "npy", "npz", "hdf5", "shards"});
  append(keys, split_keys(options, use), {"csv", "npy", "npz", "hdf5", "shards", "image_folder"});
  append(keys, array_keys(options), {"npy", "npz", "hdf5"});
  append(keys, idx_keys(options), {"idx"});
  append(keys, cifar_keys(options), {"cifar"});
  append(keys, text_keys(options, use), {"text"});
  append(keys, image_keys(options), {"image_folder", "shards"});
  append(keys, image_target_keys(options));
  append(keys, mix_keys(options));
  append(keys, {noise_key(options)});
  append(keys, pixel_keys(options.pixels));
  return keys;
}

Key on_error_key(OnError& on_error) {
  return {.name = "on_error",
          .into = one_of(on_error, {{"fail", OnError::fail}, {"skip", OnError::skip}}),
          .meaning =
              "`fail` ends the run at a sample that cannot be read; `skip` replaces it by another sample of "
              "the rank in training and leaves it out of validation; the summary counts such samples over "
              "all ranks and names the first; `--predict` leaves out such images, and counts them on the "
              "standard error output. A disk error always ends the run"};
}

DataOptions read_data_options(const Section& data, DataUse use, Task task) {
  DataOptions options;
  read_keys(data, data_keys(options, use));
  read_keys(data, {on_error_key(options.on_error)});
  if (data.has("folds") && data.has("validation_share"))
    throw data.error("validation_share", "and folds are both given; give one of them");
  if (options.format() == "image_folder") {
    options.divides_images = data.has("folds") || data.has("validation_share");
    if (!options.divides_images)
      data.refuse({"split_seed"}, "neither data.folds nor data.validation_share is given");
  }
  if (options.arrays.validation_samples) {
    data.refuse({"validation_share", "folds"}, "data.validation_samples names the samples for validation");
    if (!options.arrays.validation_labels)
      throw data.error("validation_labels",
                       "is missing; name the array of the labels of data.validation_samples");
  }
  if (data.has("validation_path") && data.has("validation_share"))
    throw data.error("validation_share", "and validation_path are both given; give one of them");
  check_task(data, options, use, task);
  if (options.format() == "image_folder" || options.format() == "shards") complete_images(data, options);
  if (options.mix.mixes() && task != Task::classification)
    throw data.error(options.mix.mixup_alpha > 0 ? "mixup_alpha" : "cutmix_alpha",
                     fmt::format("mixes the classes of images, and model.task is {}; remove it, or set "
                                 "model.task to classification",
                                 name_of(task)));
  if (options.noise > 0 && task != Task::reconstruction)
    throw data.error("noise", fmt::format("is {:g}, and model.task is {}; remove it, or set model.task to "
                                          "reconstruction, which learns to remove the noise",
                                          options.noise, name_of(task)));
  if (options.sampling != "once") {
    if (task != Task::classification)
      throw data.error("sampling", fmt::format("is {}, which draws classes, and model.task is {}; remove it",
                                               options.sampling, name_of(task)));
    data.refuse({"shuffle"},
                fmt::format("data.sampling is {}, which draws samples at random", options.sampling));
  }
  if (task == Task::multi_label) options.standardise_targets = false;
  if (options.format() == "csv") complete_table(data, options);
  if (use == DataUse::overfit) keep_samples_the_same(options);
  return options;
}

}  // namespace plexaura
