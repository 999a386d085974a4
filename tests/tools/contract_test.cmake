# Checks that the stamp of plugins changes with every header that they are compiled with: cmake -DSOURCE=...
# -DSCRATCH=... -P this
include(${SOURCE}/cmake/PlexauraContract.cmake)

file(REMOVE_RECURSE ${SCRATCH})
file(COPY ${SOURCE}/core DESTINATION ${SCRATCH} FILES_MATCHING PATTERN *.h PATTERN *.def)
plexaura_contract(before ${SCRATCH}/core)
foreach(header base/error.h tensor/layout.h tensor/host_view.h graph/node.h graph/op.h ops/conv2d.h ops/pool2d.h ops/functors.h ops/ops.def
        device/backend.h host/host_adapter.h)
  file(APPEND ${SCRATCH}/core/${header} "// another line\n")
  plexaura_contract(after ${SCRATCH}/core)
  if(after STREQUAL before)
    message(FATAL_ERROR "a plugin that was built with another core/${header} would be taken")
  endif()
  set(before ${after})
endforeach()
file(APPEND ${SCRATCH}/core/vm/vm.h "// another line\n")
plexaura_contract(after ${SCRATCH}/core)
if(NOT after STREQUAL before)
  message(FATAL_ERROR "no plugin includes core/vm/vm.h, and one that was built with another would be refused")
endif()
