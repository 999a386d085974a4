# Rejects a compiler that cannot compile Plexaura.

include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_QUIET ON)
check_cxx_source_compiles("#include <source_location>
int main() { return std::source_location::current().line() == 0; }" PLEXAURA_HAS_SOURCE_LOCATION)
if(NOT PLEXAURA_HAS_SOURCE_LOCATION)
  message(FATAL_ERROR "CMAKE_CXX_COMPILER is ${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}), which has no "
    "std::source_location of C++20 (clang 14 has none with Debian's libstdc++); Plexaura needs g++ 12 or clang 16, or a later version: "
    "choose one in a new build folder, as with -DCMAKE_CXX_COMPILER=clang++-16")
endif()
unset(CMAKE_REQUIRED_QUIET)
