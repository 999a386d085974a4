# Rejects a compiler that cannot compile Plexaura, and reports one whose kernels are slower.

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_QUIET ON)
check_cxx_source_compiles("#include <source_location>
int main() { return std::source_location::current().line() == 0; }" PLEXAURA_HAS_SOURCE_LOCATION)
if(NOT PLEXAURA_HAS_SOURCE_LOCATION)
  message(FATAL_ERROR "CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}), which has no "
    "std::source_location of C++20 (clang 14 has none with Debian's libstdc++); Plexaura needs g++ 12 or clang 16, or a later version: "
    "choose one in a new build folder, as with -DCMAKE_CXX_COMPILER=clang++-16")
endif()

# g++ compiles each loop for several generations of x86-64 processors (backends/cpu/fast/clones.h). clang 16 has no such clones of function
# templates.
check_cxx_source_compiles("
#if defined(__x86_64__) && !defined(__AVX2__)
#error
#endif
int main() {}" PLEXAURA_NEEDS_NO_CLONES)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND NOT PLEXAURA_NEEDS_NO_CLONES)
  message(STATUS "clang compiles the CPU's kernels for one kind of processor, here any x86-64: beside g++ on a processor with AVX-512, "
    "exp, tanh, erf and softmax take 3.6 to 8 times as long, additions and products as long; "
    "-DCMAKE_CXX_FLAGS=-march=native compiles them for the processor of this machine (docs/guide/deploying.md has times)")
endif()
unset(CMAKE_REQUIRED_QUIET)
