# modeld_library(NAME sources...): one static library for each folder, modeld::NAME.
function(modeld_library name)
  add_library(modeld_${name} STATIC ${ARGN})
  add_library(modeld::${name} ALIAS modeld_${name})
  target_link_libraries(modeld_${name} PUBLIC modeld_settings PRIVATE modeld_warnings)
endfunction()

# modeld_program(NAME sources...): an executable under build/bin.
function(modeld_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE modeld_settings modeld_warnings)
endfunction()
