#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "training/files/safetensors.h"

namespace plexaura {

// Settings that define what weights mean, by configuration key: "model.activation" is "relu". They are stored
// in the metadata of the weights file, as "setting.model.activation".
using Settings = std::map<std::string, std::string>;

// Returns the settings of the section `data` that define what weights mean: how samples are scaled, which number
// replaces a missing cell, and the noise. `has_images` is true if the samples are images of bytes.
Settings data_settings_of_weights(const Settings& settings, bool has_images);

void add_settings(Metadata& metadata, const Settings& settings);

// True if a file of weights contains the settings with which it was made; files of other programs do not.
bool has_settings(const Metadata& metadata);

// The data to which weights are applied.
enum class WeightsUse : std::uint8_t {
  samples_of_data,  // samples of the section `data`, as in training
  files             // files to be predicted: they get no noise, so data.noise is not compared
};

// Throws UserError that names file, key and both values if the settings of a file of weights differ from
// `now`; `advice` is the end of the sentence. Compares nothing if the file has no settings, or if `now` is
// empty. A key of `data` that only some formats have is compared only if both have a value for it.
void check_settings(const std::filesystem::path& path, const Metadata& metadata, const Settings& now,
                    std::string_view advice, WeightsUse use = WeightsUse::samples_of_data);

}  // namespace plexaura
