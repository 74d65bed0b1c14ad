#!/usr/bin/env bash
# Holds the arrows of design section 2: which folder may include which. Prints each line that breaks them.
set -u
cd "${1:?usage: include_direction.sh SOURCE_DIR}" || exit 2

declare -A allowed=(
  [schema]="schema"
  [validate]="validate schema"
  [store]="store validate schema"
  [fetch]="fetch schema"
  [quantize]="quantize validate schema"
  [daemon]="daemon store fetch quantize validate schema"
)
# Each library has one home: the folders that may include its headers.
declare -A home=(
  ['sqlite3\.h']="store"
  ['curl/']="fetch"
  ['boost/(asio|beast)']="daemon"
  ['openssl/']="validate"
  ['hwy/']="quantize"
  ['spdlog/']="daemon"
  ['CLI/']="daemon"
)

bad=0
for folder in "${!allowed[@]}"; do
  while IFS=: read -r file line text; do
    target=$(sed -E 's/.*"([a-z]+)\/.*/\1/' <<<"$text")
    [[ -v allowed[$target] ]] || continue
    [[ " ${allowed[$folder]} " == *" $target "* ]] && continue
    echo "$file:$line: $folder must not include $target"
    bad=1
  done < <(grep -rnE '^#include "[a-z]+/' "$folder" --include='*.hpp' --include='*.cpp')
done
for pattern in "${!home[@]}"; do
  for folder in "${!allowed[@]}"; do
    [[ $folder == "${home[$pattern]}" ]] && continue
    if grep -rnE "^#include <$pattern" "$folder" --include='*.hpp' --include='*.cpp'; then
      echo "<$pattern belongs to ${home[$pattern]}, not to $folder"
      bad=1
    fi
  done
done
exit $bad
