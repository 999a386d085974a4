# Rewrites the includes of the headers in the folder plexaura_headers: "core/base/error.h" becomes <plexaura/core/base/error.h>.
file(GLOB_RECURSE headers ${plexaura_headers}/*.h ${plexaura_headers}/*.def)
foreach(header ${headers})
  file(READ ${header} text)
  string(REGEX REPLACE "#include \"(plexaura/)?([^\"]+)\"" "#include <plexaura/\\2>" changed "${text}")
  if(NOT changed STREQUAL text)
    file(WRITE ${header} "${changed}")
  endif()
endforeach()
