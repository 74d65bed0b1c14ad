# modeld_embed(TARGET NAMESPACE files...): makes each file's bytes a std::string_view in the library.
#
# Declares `std::span<const EmbeddedFile> NAMESPACE::files()` in <NAMESPACE>_embedded.hpp of the build folder;
# EmbeddedFile is {name, text}, sorted by name.
function(modeld_embed target namespace)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${namespace}_embedded.cpp)
  set(paths)
  foreach(file IN LISTS ARGN)
    list(APPEND paths ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  list(SORT paths)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DNAMESPACE=${namespace} "-DFILES=${paths}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    DEPENDS ${paths} ${PROJECT_SOURCE_DIR}/cmake/embed_script.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
