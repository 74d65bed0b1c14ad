# Flags for our own code only: third-party headers must not see our warnings.
add_library(modeld_settings INTERFACE)
target_compile_features(modeld_settings INTERFACE cxx_std_20)
target_include_directories(modeld_settings INTERFACE ${PROJECT_SOURCE_DIR})
# Results of floating-point code are part of the contract: no contraction, no reassociation.
target_compile_options(modeld_settings INTERFACE -ffp-contract=off -fstack-protector-strong)
target_compile_definitions(modeld_settings INTERFACE
  $<$<CONFIG:Debug,RelWithDebInfo>:_GLIBCXX_ASSERTIONS>
  $<$<CONFIG:Release,RelWithDebInfo>:_FORTIFY_SOURCE=2>)
target_link_options(modeld_settings INTERFACE -Wl,-z,relro,-z,now)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(MODELD_SANITIZE)
  target_compile_options(modeld_settings INTERFACE
    -fsanitize=${MODELD_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(modeld_settings INTERFACE -fsanitize=${MODELD_SANITIZE})
endif()

add_library(modeld_warnings INTERFACE)
target_compile_options(modeld_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  -Wnon-virtual-dtor -Wold-style-cast
  # Without the library's assertions GCC 12 sees null pointers in moved strings.
  $<$<NOT:$<CONFIG:Release>>:-Wnull-dereference>
  $<$<BOOL:${MODELD_WERROR}>:-Werror>)

if(MODELD_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees uninitialized members in <regex> once the sanitizers have rewritten it.
  target_compile_options(modeld_warnings INTERFACE -Wno-maybe-uninitialized)
endif()

find_program(MODELD_CCACHE ccache)
if(MODELD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MODELD_CCACHE})
endif()
