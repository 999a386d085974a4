# The options with which every target of the project is compiled. Targets are declared with the functions below. These
# find the sources of a folder, so that a new file needs no line here.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

include(PlexauraCompiler)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/with_ccache)
endif()

# Kernels are compiled with -O3 (plexaura_kernels). Other code is as fast with -O2, and compiles sooner.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

set(plexaura_compile_options -Wall -Wextra -Wpedantic -Werror -fno-math-errno -fno-trapping-math)
# Errors and traces name source files relative to the root of the project. With cmake/with_ccache the compiler
# may get paths relative to the build folder.
list(APPEND plexaura_compile_options -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
file(RELATIVE_PATH root_from_build ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})
if(root_from_build)
  cmake_path(APPEND root_from_build "")
  list(APPEND plexaura_compile_options -fmacro-prefix-map=${root_from_build}=)
endif()
# libstdc++ 12 calls its own deprecated function in std::stable_sort, about which clang 19 and 22 warn.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 19)
  list(APPEND plexaura_compile_options -Wno-deprecated-declarations)
endif()
set(plexaura_plain_compile_options ${plexaura_compile_options})  # without those of sanitizers
set(plexaura_link_options "")
if(PLEXAURA_SANITIZE STREQUAL "address")
  list(APPEND plexaura_compile_options -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  list(APPEND plexaura_link_options -fsanitize=address,undefined)
elseif(PLEXAURA_SANITIZE STREQUAL "thread")
  list(APPEND plexaura_compile_options -fsanitize=thread)
  list(APPEND plexaura_link_options -fsanitize=thread)
elseif(PLEXAURA_SANITIZE)
  message(FATAL_ERROR "PLEXAURA_SANITIZE is '${PLEXAURA_SANITIZE}'; it must be empty, address or thread")
endif()

if(PLEXAURA_SANITIZE)
  # g++ 12 warns about <regex> if a sanitizer is on
  list(APPEND plexaura_compile_options -Wno-maybe-uninitialized)
endif()

find_package(Threads REQUIRED)
find_package(OpenMP COMPONENTS CXX)
if(NOT OpenMP_CXX_FOUND)
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} finds no OpenMP, whose threads the kernels use; install its runtime (for clang N of "
    "Debian, that is libomp-N-dev, which replaces that of any other version) and run CMake again")
endif()
find_package(fmt REQUIRED)

# Headers that nearly every source includes are parsed once for each large target. Each source still includes
# what it uses: the debug preset builds without precompiled headers.
set(plexaura_precompiled_headers <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <map> <memory> <optional> <span>
  <string> <utility> <vector> <fmt/format.h>)

function(plexaura_configure target)
  target_compile_options(${target} PRIVATE ${plexaura_compile_options})
  target_link_options(${target} PRIVATE ${plexaura_link_options})
endfunction()

# Several sources of a library, a plugin or a test program are compiled as one, which takes half the time or
# less. So the names in the anonymous namespaces of a library must differ, and each test file has a namespace
# of its own. The compiler rejects equal names, and dev/check_names those that it would treat as overloads.
# The debug preset compiles each source separately.
option(PLEXAURA_UNITY "Compile several sources of a library, of a plugin or of a test program as one" ON)
if(NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()

# plexaura_library(NAME TYPE SOURCES...): target plexaura_NAME, alias plexaura::NAME
function(plexaura_library name type)
  add_library(plexaura_${name} ${type} ${ARGN})
  add_library(plexaura::${name} ALIAS plexaura_${name})
  plexaura_configure(plexaura_${name})
  target_precompile_headers(plexaura_${name} PRIVATE ${plexaura_precompiled_headers})
  set_target_properties(plexaura_${name} PROPERTIES EXPORT_NAME ${name} UNITY_BUILD ${PLEXAURA_UNITY})
  target_compile_features(plexaura_${name} PUBLIC cxx_std_20)
  target_include_directories(plexaura_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_property(GLOBAL APPEND PROPERTY plexaura_libraries plexaura_${name})
endfunction()

# plexaura_kernels(TARGET): TARGET contains kernels, which are loops over numbers. They are compiled with the
# most optimisation of the build type, separately from other sources, so that their code does not depend on
# other files. They use the threads of OpenMP, except with the thread sanitizer, which does not know OpenMP's
# runtime.
function(plexaura_kernels target)
  target_compile_options(${target} PRIVATE $<IF:$<CONFIG:Release>,-O3,$<$<NOT:$<CONFIG:Debug>>:-O1>>)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  if(NOT PLEXAURA_SANITIZE STREQUAL "thread")
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_CXX)
  endif()
endfunction()

# plexaura_few_pointer_checks(TARGET): leaves out the checks of undefined behaviour that the compiler adds to each
# use of a pointer, because they take a quarter of the compile time of kernels. The address sanitizer still reports accesses
# out of bounds and through null. Code that reads numbers from bytes is in other libraries, which have all checks.
function(plexaura_few_pointer_checks target)
  if(PLEXAURA_SANITIZE STREQUAL "address")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,object-size,pointer-overflow,vptr)
  endif()
endfunction()

# plexaura_sources(VARIABLE FOLDERS...): sets VARIABLE to the sources directly in these folders of the current
# directory
function(plexaura_sources variable)
  set(found "")
  foreach(folder ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
    list(APPEND found ${sources})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

function(plexaura_executable target)
  add_executable(${target} ${ARGN})
  plexaura_configure(${target})
endfunction()

# plexaura_program(NAME SOURCES...): an executable that is installed
function(plexaura_program target)
  plexaura_executable(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR})
  set_property(GLOBAL APPEND PROPERTY plexaura_programs ${target})
endfunction()

# plexaura_plugin(NAME SOURCES...): target plexaura_NAME, a backend that is loaded at run time. It is built
# beside libplexaura_core.so.
function(plexaura_plugin name)
  add_library(plexaura_${name} MODULE ${ARGN})
  plexaura_configure(plexaura_${name})
  set_target_properties(plexaura_${name} PROPERTIES
    PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:plexaura_core> UNITY_BUILD ${PLEXAURA_UNITY})
  target_include_directories(plexaura_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(plexaura_${name} PRIVATE plexaura::core fmt::fmt)
endfunction()
