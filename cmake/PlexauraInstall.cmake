# Rules for installation, and the package that find_package(Plexaura) reads. Files for those who compile
# against Plexaura are the component `development`; all others are `runtime`.
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Plexaura)
get_property(libraries GLOBAL PROPERTY plexaura_libraries)
# Each library has an export of its own, so that its user does not need the dependencies of other libraries.
foreach(library ${libraries})
  install(TARGETS ${library} EXPORT ${library}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  string(REPLACE plexaura_ Plexaura_ file ${library})
  install(EXPORT ${library} NAMESPACE plexaura:: FILE ${file}.cmake DESTINATION ${package_folder} COMPONENT development)
endforeach()

# Headers that need an optional library of Plexaura's build are not installed.
install(DIRECTORY core testing training backends distributed models onnx plexaura/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plexaura
  COMPONENT development FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
  PATTERN backends/cpu/onednn EXCLUDE PATTERN backends/cuda EXCLUDE PATTERN distributed/mpi EXCLUDE
  PATTERN sodium_seal.h EXCLUDE)
install(FILES app/program.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plexaura/app COMPONENT development)
# In this tree, include paths begin at the root. Installed headers are included by paths that begin with
# plexaura/, so that our folders cannot be confused with those of another project.
install(CODE "set(plexaura_headers \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/plexaura\")"
  COMPONENT development)
install(SCRIPT cmake/InstalledIncludes.cmake COMPONENT development)

get_property(programs GLOBAL PROPERTY plexaura_programs)
if(programs)
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/plexaura/models FILES_MATCHING PATTERN "*.yaml" PATTERN "*.csv"
  PATTERN layers EXCLUDE PATTERN zoo EXCLUDE)

# Tools that start, explain and plan a run are installed. Tools for the development of Plexaura are not.
set(tools_folder ${CMAKE_INSTALL_DATADIR}/plexaura/tools)
if(PLEXAURA_DEBIAN)
  set(tools_folder ${CMAKE_INSTALL_LIBEXECDIR}/plexaura)
endif()
set(scripts run runs scaling weights why)
list(TRANSFORM scripts PREPEND tools/ OUTPUT_VARIABLE script_files)
install(PROGRAMS ${script_files} DESTINATION ${tools_folder})
install(FILES tools/mpi_environment tools/tool.py DESTINATION ${tools_folder})
install(DIRECTORY tools/deploy tools/run_parts tools/runs_parts tools/scaling_parts tools/weights_parts DESTINATION ${tools_folder} PATTERN __pycache__ EXCLUDE)
if(TARGET graph)
  file(RELATIVE_PATH libraries_from_tools /${tools_folder} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(graph onnx pack PROPERTIES INSTALL_RPATH $ORIGIN/${libraries_from_tools})
  install(TARGETS graph onnx pack RUNTIME DESTINATION ${tools_folder})
endif()

# Builds what is installed, without examples, tests and tools for the development of Plexaura.
add_custom_target(installed DEPENDS ${libraries} ${programs})
foreach(target graph onnx pack plexaura_described_cuda)
  if(TARGET ${target})
    add_dependencies(installed ${target})
  endif()
endforeach()

set(documentation_folder ${CMAKE_INSTALL_DATADIR}/doc/plexaura)
install(FILES README.md LICENSE DESTINATION ${documentation_folder})
install(DIRECTORY docs DESTINATION ${documentation_folder})

# Users of a static library link the same libraries as this build.
get_directory_property(PLEXAURA_HAS_ONEDNN DIRECTORY ${PROJECT_SOURCE_DIR}/backends DEFINITION dnnl_FOUND)
get_directory_property(PLEXAURA_HAS_MPI DIRECTORY ${PROJECT_SOURCE_DIR}/distributed DEFINITION MPI_C_FOUND)
get_directory_property(PLEXAURA_HAS_SODIUM DIRECTORY ${PROJECT_SOURCE_DIR}/distributed DEFINITION Sodium_FOUND)
configure_package_config_file(cmake/PlexauraConfig.cmake.in ${PROJECT_BINARY_DIR}/package/PlexauraConfig.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/PlexauraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/FindSodium.cmake ${PROJECT_BINARY_DIR}/package/PlexauraConfig.cmake
  ${PROJECT_BINARY_DIR}/package/PlexauraConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT development)

# For projects that do not use CMake: pkg-config --cflags --libs plexaura. The libraries stand before those they use.
set(pkg_config_requires "fmt yaml-cpp libjpeg libpng zlib")
set(pkg_config_libraries "")
if(PLEXAURA_HAS_SODIUM)
  string(APPEND pkg_config_requires " libsodium")
endif()
if(PLEXAURA_HAS_MPI)
  if("mpich" IN_LIST MPI_C_LIB_NAMES)
    string(APPEND pkg_config_requires " mpich")
  else()
    string(APPEND pkg_config_requires " ompi-c")
  endif()
endif()
if(PLEXAURA_HAS_ONEDNN)
  string(APPEND pkg_config_libraries " -ldnnl")
endif()
if(PLEXAURA_HAS_HDF5)
  get_filename_component(hdf5 ${HDF5_SERIAL_LIBRARY} NAME_WE)  # libhdf5_serial or libhdf5
  string(REGEX REPLACE "^lib" " -l" hdf5 ${hdf5})
  string(APPEND pkg_config_libraries ${hdf5})
endif()
file(RELATIVE_PATH prefix_from_pkg_config /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pkg_config ${prefix_from_pkg_config})
configure_file(cmake/plexaura.pc.in ${PROJECT_BINARY_DIR}/package/plexaura.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/plexaura.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

if(PLEXAURA_DEBIAN)
  include(PlexauraDebian)
endif()
