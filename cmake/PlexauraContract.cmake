# plexaura_contract(VARIABLE FOLDER): a hash of the headers in FOLDER through which the engine and a plugin
# interact: the calls of a plugin, the options of ops and the types of results. A plugin contains the hash,
# which shows that it was compiled against the same headers.
function(plexaura_contract variable folder)
  set(again CONFIGURE_DEPENDS)
  if(CMAKE_SCRIPT_MODE_FILE)
    set(again "")
  endif()
  file(GLOB headers ${again} ${folder}/base/*.h ${folder}/tensor/*.h ${folder}/graph/*.h ${folder}/ops/*.h ${folder}/ops/ops.def
    ${folder}/device/*.h ${folder}/host/*.h)
  set(contract "")
  foreach(header ${headers})
    file(SHA256 ${header} hash)
    string(APPEND contract ${hash})
    if(again)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    endif()
  endforeach()
  string(SHA256 contract "${contract}")
  string(SUBSTRING ${contract} 0 12 contract)
  set(${variable} ${contract} PARENT_SCOPE)
endfunction()
