#!/bin/bash
# Runs inside a new Debian, as root: installs the packages of /tmp, trains with two ranks, and builds a project of a user.
set -euo pipefail
cd /tmp
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y --no-install-recommends "$@" > apt.log 2>&1 || { cat apt.log; return 1; }; }

# The programs need nothing but their package.
install ./plexaura_*.deb
. /usr/libexec/plexaura/mpi_environment
export OMP_NUM_THREADS=1
iris=(/usr/share/plexaura/models/iris.yaml --set data.path=/usr/share/plexaura/models/iris.csv --set training.epochs=2)
mpirun -n 2 plexaura-mlp "${iris[@]}" --set output.dir=out | tee said
grep -q ", 2 ranks$" said
plexaura-run -n 2 plexaura-mlp "${iris[@]}" --set output.dir=again
plexaura-why out
plexaura-weights list out > /dev/null
plexaura-graph "${iris[@]}" > /dev/null
plexaura-onnx export "${iris[@]::1}" out.onnx "${iris[@]:1}" --set output.dir=out
for program in convnet convnext mobilenet_v2 resnet vgg runs scaling pack; do
  plexaura-$program --help > /dev/null
done

# A project needs the second package and a compiler.
install ./plexaura-dev_*.deb g++ cmake make pkgconf
mkdir mine
cat > mine/CMakeLists.txt << 'END'
cmake_minimum_required(VERSION 3.25)
project(Mine LANGUAGES CXX)
find_package(Plexaura REQUIRED)
add_executable(mine ../using_a_model.cpp)
target_link_libraries(mine PRIVATE plexaura::models plexaura::cpu)
END
cmake -S mine -B mine/build -D CMAKE_BUILD_TYPE=Release
cmake --build mine/build
read -ra flags <<< "$(pkg-config --cflags --libs plexaura)"
g++ using_a_model.cpp -o by_pkg_config "${flags[@]}"
cd /usr/share/plexaura
/tmp/mine/build/mine
/tmp/by_pkg_config

apt-get remove -y plexaura > /dev/null 2>&1
[ ! -e /usr/bin/plexaura-mlp ] && [ ! -e /usr/libexec/plexaura ]
echo "the packages work in a new Debian"
