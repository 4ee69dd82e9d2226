# refused EXIT_CODE PATTERN ARGUMENT...: kymo must exit with EXIT_CODE, print nothing on stdout, and print one line that
# matches PATTERN on stderr.
refused() {
  local code="$1" pattern="$2"
  shift 2
  run --separate-stderr -"$code" "$kymo" "$@"
  echo "exit $status, stdout: $output, stderr: $stderr"
  [ -z "$output" ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"$pattern"* ]]
}
