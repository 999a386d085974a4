# cmake -D SOURCE=FOLDER -D OUTPUT=FILE -P Revision.cmake
# Writes a C++ source that says from which revision of FOLDER the build is: the git commit, and behind a plus a hash of what was
# changed since in files that git knows. Nothing where FOLDER is no checkout of its own. A file that says so already is left alone.
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
