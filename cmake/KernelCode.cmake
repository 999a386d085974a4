# cmake -D SOURCE=FOLDER -D BACKEND=NAME -D NAMESPACE=NAME -D COMPILER=TEXT -D OUTPUT=FILE -P KernelCode.cmake
# Writes a C++ source with a hash of TEXT, which describes the compiler, and of all files from which the
# kernels of backends/NAME are compiled. Does not write a file that has this content already.
set(folder ${SOURCE}/backends/${BACKEND})
file(GLOB_RECURSE files ${folder}/*.cpp ${folder}/*.cu ${folder}/*.h ${folder}/*.def)
file(GLOB shared ${SOURCE}/core/loops/* ${SOURCE}/core/ops/* ${SOURCE}/core/host/* ${SOURCE}/backends/regions/*)
file(GLOB headers ${SOURCE}/core/tensor/*.h ${SOURCE}/core/device/*.h)
set(text "${COMPILER}")
foreach(file ${files} ${shared} ${headers})
  file(SHA256 ${file} hash)
  string(APPEND text " ${hash}")
endforeach()
string(SHA256 hash "${text}")
string(SUBSTRING ${hash} 0 16 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "backends/@BACKEND@/kernel_code.h"

std::string @NAMESPACE@::kernel_code_stamp() { return "@hash@"; }
]] @ONLY)
