# The packages for Debian: `plexaura` with the programs, tools and pages, and `plexaura-dev` with headers,
# static libraries and the packages for CMake and pkg-config. CPack writes both.

# Names such as `resnet` are too general for /usr/bin.
foreach(program ${programs})
  set_target_properties(${program} PROPERTIES OUTPUT_NAME plexaura-${program})
endforeach()
file(RELATIVE_PATH tools_from_programs /${CMAKE_INSTALL_BINDIR} /${tools_folder})
foreach(tool ${scripts} graph onnx pack)
  set(link ${PROJECT_BINARY_DIR}/package/bin/plexaura-${tool})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/package/bin)
  file(CREATE_LINK ${tools_from_programs}/${tool} ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${CMAKE_INSTALL_BINDIR})
endforeach()

# Packages that link the library depend on this series, in which the version of the CMake package is compatible.
set_target_properties(plexaura_core PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# The maintainer is the one who builds the packages, named by the variables that Debian's own tools read.
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Plexaura <nobody@example.org>")
if(NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME plexaura)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME plexaura)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION science)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # else it stands before the descriptions below
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "programs that train neural networks on one machine or several
The programs read a model and its training from a YAML file, and train it on
the cores of one machine or, by MPI, with ranks on several machines. Tools
start runs, explain failures, and convert weights.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS $<TARGET_FILE_DIR:plexaura_core>)
# Debian requires the version of the library that other packages need, and a trigger of ldconfig.
set(shlibs ${PROJECT_BINARY_DIR}/package/shlibs)
file(CONFIGURE OUTPUT ${shlibs} CONTENT "libplexaura_core @PROJECT_VERSION_MAJOR@.@PROJECT_VERSION_MINOR@ plexaura (>= @PROJECT_VERSION@)\n" @ONLY)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${shlibs} ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS python3)

# Projects that link the static libraries link what these use.
set(development_depends "plexaura (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})" libfmt-dev libyaml-cpp-dev
  libjpeg-dev libpng-dev zlib1g-dev nlohmann-json3-dev)
if(PLEXAURA_HAS_SODIUM)
  list(APPEND development_depends libsodium-dev)
endif()
if(PLEXAURA_HAS_ONEDNN)
  list(APPEND development_depends libdnnl-dev ocl-icd-opencl-dev)  # oneDNN's CMake package requires OpenCL
endif()
if(PLEXAURA_HAS_MPI)
  if("mpich" IN_LIST MPI_C_LIB_NAMES)
    message(FATAL_ERROR "PLEXAURA_DEBIAN makes packages that depend on Open MPI, and CMake has found MPICH; configure with the preset deb, or turn it off")
  endif()
  string(APPEND CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS ", openmpi-bin")  # contains mpirun, which no library depends on
  list(APPEND development_depends libopenmpi-dev)
endif()
list(JOIN development_depends ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME plexaura-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "headers and libraries of Plexaura, for models in C++
A project finds them by CMake, find_package(Plexaura), or by pkg-config. They
build and differentiate graphs, compile them, and train models.")

# Debian requires both files in each package.
string(TIMESTAMP changelog_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(changelog ${PROJECT_BINARY_DIR}/package/changelog)
configure_file(cmake/debian/changelog.in ${changelog} @ONLY)
execute_process(COMMAND gzip -9nc ${changelog} OUTPUT_FILE ${changelog}.Debian.gz COMMAND_ERROR_IS_FATAL ANY)
foreach(component runtime development)
  string(TOUPPER ${component} name)
  install(FILES cmake/debian/copyright ${changelog}.Debian.gz
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME} COMPONENT ${component})
endforeach()
include(CPack)
