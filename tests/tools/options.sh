#!/usr/bin/env bash
# options.sh TUTTI: checks that commands implement all options in their help. Passes a value that no option accepts (flags: no
# value), and ignores other errors of the command line.
set -uo pipefail
tutti="$(realpath "$1")" status=0 tried=0
folder="$(mktemp -d)" && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 1  # Options may create files.
for command in plan verify explain estimate topo simulate doctor; do
  help="$("$tutti" "$command" --help)" || { echo "tutti $command --help fails"; exit 1; }
  [ "$help" = "$("$tutti" help "$command")" ] || { echo "tutti help $command differs"; status=1; }
  while read -r option argument; do
    words=("$option")
    [[ "$argument" =~ ^[A-Z] && ! "$argument" =~ [a-z] ]] && words+=("?")
    output="$("$tutti" "$command" "${words[@]}" 2>&1)"
    tried=$((tried + 1))
    if [[ "$output" =~ (not implemented|has no option|does not accept a value|needs a value) ]]; then
      echo "tutti $command ${words[*]}: $output"
      status=1
    fi
  done < <(sed -n 's/^  \(--[a-z-]*\) \{1,\}\([^ ]*\).*/\1 \2/p' <<<"$help")
done
echo "$tried options tried"
[ "$tried" -gt 75 ] && exit "$status"
