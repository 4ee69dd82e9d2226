# Runs kymo and requires: this exit code, nothing on stdout, one line on stderr that holds the pattern.
refused() {
  local code="$1" pattern="$2"
  shift 2
  run --separate-stderr "$kymo" "$@"
  [ "$status" -eq "$code" ]
  [ -z "$output" ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"$pattern"* ]]
}
