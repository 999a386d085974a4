#include "core/device/plugin.h"

#include <dlfcn.h>
#include <filesystem>

namespace plexaura {

std::string core_library_folder() {
  static const char here = 0;  // the address of this variable lies in this shared object
  Dl_info info{};
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return ".";
  return std::filesystem::absolute(info.dli_fname).parent_path().string();
}

}  // namespace plexaura
