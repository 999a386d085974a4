#pragma once

#include <filesystem>
#include <hdf5.h>
#include <string>
#include <vector>

namespace plexaura::testing {

// An HDF5 file that a test writes.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(const std::filesystem::path& path, hsize_t user_block = 0) {
    const hid_t plan = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_userblock(plan, user_block);
    file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, plan, H5P_DEFAULT);
    H5Pclose(plan);
  }
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;
  ~Hdf5Writer() { H5Fclose(file_); }

  // Writes elements of the type `memory` as `stored`, in chunks that are compressed if `chunk` is not empty.
  void write(const std::string& name, hid_t stored, hid_t memory, const std::vector<hsize_t>& extents,
             const void* values, const std::vector<hsize_t>& chunk = {}) {
    const hid_t space = H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr);
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    if (!chunk.empty()) {
      H5Pset_chunk(plan, static_cast<int>(chunk.size()), chunk.data());
      H5Pset_deflate(plan, 4);
    }
    const hid_t groups = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(groups, 1);
    const hid_t dataset = H5Dcreate2(file_, name.c_str(), stored, space, groups, plan, H5P_DEFAULT);
    if (values != nullptr) H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Dclose(dataset);
    H5Pclose(groups);
    H5Pclose(plan);
    H5Sclose(space);
  }

  // Adds a link to a dataset of another file in the same folder.
  void link(const std::string& name, const std::string& file, const std::string& dataset) {
    H5Lcreate_external(file.c_str(), dataset.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }

 private:
  hid_t file_;
};

}  // namespace plexaura::testing
