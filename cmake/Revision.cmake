# cmake -D SOURCE=FOLDER -D OUTPUT=FILE -P Revision.cmake
# Writes a C++ source with the revision of FOLDER: the git commit, followed by a plus and a hash of the
# changes since then in tracked files. The revision is empty if FOLDER is no git checkout of its own. Does not
# write a file that has this content already.
find_package(Git QUIET)
set(revision "")

function(git variable)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} ${ARGN}
    OUTPUT_VARIABLE output RESULT_VARIABLE result ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    set(output "")
  endif()
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

if(GIT_FOUND AND EXISTS ${SOURCE}/.git)
  git(commit rev-parse --short=12 HEAD)
  git(changes diff --no-ext-diff --no-color --full-index HEAD)
  set(revision "${commit}")
  if(changes)
    string(SHA256 hash "${changes}")
    string(SUBSTRING ${hash} 0 8 hash)
    string(APPEND revision "+${hash}")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "app/options/version.h"

std::string plexaura::source_revision() { return "@revision@"; }
]] @ONLY)
