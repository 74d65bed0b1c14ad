#!/usr/bin/env bash
# Writes completions for bash, fish and zsh out of what modelctl prints for --help.
# usage: write.sh MODELCTL BASH.out FISH.out ZSH.out
set -euo pipefail
modelctl=${1:?usage: write.sh MODELCTL BASH.out FISH.out ZSH.out} bash_out=$2 fish_out=$3 zsh_out=$4

commands=$("$modelctl" --help | awk '/^Subcommands:/ { on = 1; next } on && /^  [a-z]/ { print $1 }')
options_of() { "$modelctl" "$@" --help | grep -oE '^ +(-[a-zA-Z],)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sort -u; }
about() { "$modelctl" "$1" --help | head -1 | tr -d "'"; }

{
  echo '# bash completion for modelctl'
  echo '_modelctl() {'
  echo '  local word=${COMP_WORDS[COMP_CWORD]} command= i'
  echo '  for ((i = 1; i < COMP_CWORD; i++)); do'
  echo '    case ${COMP_WORDS[i]} in --socket) ((i++)) ;; -*) ;; *) command=${COMP_WORDS[i]}; break ;; esac'
  echo '  done'
  echo '  case $command in'
  printf "    '') COMPREPLY=(\$(compgen -W '%s' -- \"\$word\")) ;;\n" "$(echo $commands $(options_of))"
  for command in $commands; do
    printf "    %s) [[ \$word == -* ]] && COMPREPLY=(\$(compgen -W '%s' -- \"\$word\")) ;;\n" "$command" "$(echo $(options_of "$command"))"
  done
  echo '  esac'
  echo '}'
  echo 'complete -o default -F _modelctl modelctl'
} >"$bash_out"

{
  echo '# fish completion for modelctl'
  for command in $commands; do
    printf "complete -c modelctl -n __fish_use_subcommand -f -a %s -d '%s'\n" "$command" "$(about "$command")"
    for option in $(options_of "$command"); do
      printf "complete -c modelctl -n '__fish_seen_subcommand_from %s' -l %s\n" "$command" "${option#--}"
    done
  done
} >"$fish_out"

{
  echo '#compdef modelctl'
  echo '# zsh completion for modelctl'
  echo 'local -a commands=('
  for command in $commands; do printf "  '%s:%s'\n" "$command" "$(about "$command" | tr ':' ',')"; done
  echo ')'
  echo 'if ((CURRENT == 2)); then _describe command commands; return; fi'
  echo 'case $words[2] in'
  for command in $commands; do printf "  %s) compadd -- %s ;;\n" "$command" "$(echo $(options_of "$command"))"; done
  echo 'esac'
  echo '_files'
} >"$zsh_out"
