#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "training/data/arrays/npy.h"

namespace plexaura {

// An HDF5 file, whose datasets are read as arrays of numpy. Errors are UserErrors that name the file and the dataset. The
// HDF5 library is optional: without it, the constructor throws. Not thread-safe, but the arrays are.
// Source: HDF5 library, https://support.hdfgroup.org/documentation/hdf5/latest/.
class Hdf5File {
 public:
  // Throws if the file is no HDF5 file, or damaged.
  explicit Hdf5File(const std::filesystem::path& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // Returns a dataset, which may be in groups: "train/x". A contiguous dataset stays at its place in the file; a dataset
  // in chunks, or of text of variable length, is read into memory. Throws if there is no such dataset, and for elements
  // of another type than numpy.save() writes for numbers, bool and text.
  NpyArray open(const std::string& name) const;

 private:
  std::filesystem::path path_;
  [[maybe_unused]] std::int64_t file_ = -1;  // the hid_t of the file
};

}  // namespace plexaura
