# A package for conan 2, built with Debian's compiler and libraries. Run from the folder of the sources:
#   conan create tools/deploy/conanfile.py
#   conan create tools/deploy/conanfile.py -c tools.system.package_manager:mode=install
# The second command also installs what is missing of Debian's packages, as root.
import pathlib
import shutil

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.scm import Git
from conan.tools.system.package_manager import Apt


class Plexaura(ConanFile):
    name = "plexaura"
    version = "0.1.0"
    license = "Apache-2.0"
    description = "Programs and C++ libraries that train neural networks on one machine or, by MPI, with ranks on several machines"
    package_type = "shared-library"  # VirtualRunEnv adds the programs and libraries of such packages only
    settings = "os", "arch", "compiler", "build_type"

    def export_sources(self):
        sources = pathlib.Path(self.recipe_folder).parent.parent
        for file in Git(self, sources).included_files():
            target = pathlib.Path(self.export_sources_folder, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(sources / file, target)

    def system_requirements(self):
        Apt(self).install([
            "g++", "cmake", "ninja-build", "python3", "libdnnl-dev", "ocl-icd-opencl-dev", "libopenmpi-dev", "openmpi-bin", "libyaml-cpp-dev",
            "nlohmann-json3-dev", "libcli11-dev", "libfmt-dev", "libsodium-dev", "libjpeg62-turbo-dev", "libpng-dev", "zlib1g-dev"])

    def layout(self):
        # With this place of the build folder in the sources, ccache finds what another build has compiled.
        self.folders.build = "build"
        self.folders.generators = "build/conan"

    def generate(self):
        toolchain = CMakeToolchain(self, generator="Ninja")
        toolchain.blocks.remove("arch_flags")  # -m64, the compiler's default, which would hide from ccache what another build has compiled
        toolchain.cache_variables["PLEXAURA_TESTS"] = False
        toolchain.cache_variables["PLEXAURA_HDF5"] = False  # the package must not depend on a library that is not in the list
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="installed")

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The package contains its own files for find_package(Plexaura), so that CMakeDeps must not write any.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/Plexaura"]
