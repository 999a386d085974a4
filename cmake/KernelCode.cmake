# cmake -D SOURCE=FOLDER -D COMPILER=TEXT -D OUTPUT=FILE -P KernelCode.cmake
# Writes a C++ source with a hash of all that kernels on the CPU are compiled from, and of TEXT, which says how. A file that says so
# already is left alone.
file(GLOB_RECURSE files ${SOURCE}/backends/cpu/*.cpp ${SOURCE}/backends/cpu/*.h)
file(GLOB headers ${SOURCE}/core/ops/*.h ${SOURCE}/core/ops/*.def ${SOURCE}/core/tensor/*.h ${SOURCE}/core/device/*.h)
set(text "${COMPILER}")
foreach(file ${files} ${headers})
  file(SHA256 ${file} hash)
  string(APPEND text " ${hash}")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "backends/cpu/kernel_code.h"

std::string plexaura::kernel_code_stamp() { return "@hash@"; }
]] @ONLY)
