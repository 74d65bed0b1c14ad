#!/usr/bin/env bash
# Writes modelctl(1): its commands come out of what the program prints for --help.
# usage: commands_page.sh MODELCTL PAGE.in PAGE.out
set -euo pipefail
modelctl=${1:?usage: commands_page.sh MODELCTL PAGE.in PAGE.out} template=$2 page=$3

roff() { sed -E 's/\\/\\\\/g; s/-/\\-/g; s/^([.'\''])/\\\&\1/'; }

commands=$("$modelctl" --help | awk '/^Subcommands:/ { on = 1; next } on && /^  [a-z]/ { print $1 }')
text=$(
  for command in $commands; do
    help=$("$modelctl" "$command" --help)
    printf '.SS %s\n' "$(roff <<<"$command")"
    head -1 <<<"$help" | roff
    printf '.PP\n.EX\n'
    tail -n +2 <<<"$help" | grep -vE '^ +(-h,--help|--help-all) ' | awk 'NF || seen { print; seen = 1 }' | roff
    printf '.EE\n'
    nested=$(awk '/^Subcommands:/ { on = 1; next } on && /^  [a-z]/ { print $1 }' <<<"$help")
    for sub in $nested; do
      printf '.PP\n.EX\n%s %s:\n' "$(roff <<<"$command")" "$(roff <<<"$sub")"
      "$modelctl" "$command" "$sub" --help | grep -vE '^ +(-h,--help|--help-all) ' | roff
      printf '.EE\n'
    done
  done
)
awk -v text="${text//\\/\\\\}" '/^@COMMANDS@$/ { print text; next } { print }' "$template" >"$page"
