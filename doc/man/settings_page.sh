#!/usr/bin/env bash
# Writes modeld.toml(5), and the configuration file with every setting as a comment, out of what modeld prints.
# usage: settings_page.sh MODELD PAGE.in PAGE.out CONFIG.out
set -euo pipefail
modeld=${1:?usage: settings_page.sh MODELD PAGE.in PAGE.out CONFIG.out} template=$2 page=$3 config=$4

# In a clean environment, so that the defaults of the system come out.
printed=$(env -i HOME=/nonexistent "$modeld" --print-config --config /dev/null --root /var/lib/modeld --socket /run/modeld/modeld.sock)

{
  echo '# Configuration of modeld, see modeld.toml(5). A setting that stands behind a # is at its default.'
  sed -E 's/^([a-z_]+ = )/#\1/' <<<"$printed"
} >"$config"

settings=$(awk '
  function roff(text) { gsub(/\\/, "\\\\", text); gsub(/-/, "\\-", text); return text }
  /^\[/ { section = substr($0, 2, length($0) - 2); printf ".SS %s\n", roff($0) }
  /^# / { meaning = substr($0, 3) }
  /^[a-z_]+ = / {
    key = $1; value = substr($0, length(key) + 4)
    printf ".TP\n.B %s.%s\n%s Default: %s.\n", section, roff(key), roff(meaning), roff(value)
  }' <<<"$printed")
awk -v settings="$settings" '/^@SETTINGS@$/ { print settings; next } { print }' "$template" >"$page"
