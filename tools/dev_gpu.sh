# `tools/dev gpu`: build, test and measure on the GPU of this machine. tools/dev sources this file.

# Notes missing packages, except those unpacked in $deps. make suffices if ninja is missing.
need_gpu_build() {
  command -v ninja >/dev/null || need make make
  need g++ g++ gcc
  need cmake cmake
  need python3 python3
  compgen -G "$deps/usr/include/sodium.h" >/dev/null || need libsodium-dev /usr/include/sodium.h "/usr/lib/*/libsodium.a"
  compgen -G "$deps/usr/include/gtest/gtest.h" >/dev/null || need libgtest-dev /usr/include/gtest/gtest.h "/usr/lib/*/libgtest.a"
}

# Installs the noted packages. If apt fails, as on a machine without network, exits with a message; if only GoogleTest is
# missing, returns 1 instead, because measurements run without it.
install_for_gpu() {
  [ ${#missing[@]} -eq 0 ] && return
  (timeout_s=30; install_missing) && return
  say "these packages could not be installed: ${missing[*]}; unpack them in $deps (see CONTRIBUTING.md, \"On a GPU\")"
  [ "${missing[*]}" = libgtest-dev ] || exit 1
  say "GoogleTest is missing; tests are not built, only measurements run"
  return 1
}

# Seconds from the start to the end of `tools/dev gpu` and to the end of its tests. GPU machines may be available for ten
# minutes only; tests end early enough to leave time for the measurements.
gpu_end=530 tests_end=370

# ctest_gpu <label>: runs the tests with the label, for at most 150 s. Fails if a test fails or no time is left.
ctest_gpu() {
  local left=$((tests_end - SECONDS))
  [ "$left" -lt 150 ] || left=150
  if [ "$left" -lt 10 ]; then
    say "tests labeled $1 are not run: no time is left for tests"
    return 1
  fi
  timeout -k 5 "$left" ctest --test-dir build-gpu --output-on-failure -L "^$1\$" && return
  say "tests labeled $1 failed or exceeded $left s"
  return 1
}

# sanitize <tool> <test> <filter>: runs the selected test cases under compute-sanitizer. Exit status 9: the tool found errors.
sanitize() {
  if [ $((tests_end - SECONDS)) -lt 60 ]; then
    say "compute-sanitizer --tool $1 is skipped: the remaining time is reserved for measurements"
    return
  fi
  say "running compute-sanitizer --tool $1 on $2 $3"
  timeout -k 5 60 compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 5 "$2" --gtest_filter="$3"
}

# sanitizes <tool>: succeeds if the tool can run one fold on this machine. Some machines do not permit the tool, and a kernel
# that uses all registers leaves none for it. Errors that the tool finds (status 9) count as success: gpu_tests reports them.
sanitizes() {
  local said status=0
  said="$(sanitize "$1" "$folder/executor_cuda_fold_test" '*OfOneElement*/float32' 2>&1)" || status=$?
  if [ $status -eq 0 ] || [ $status -eq 9 ]; then return 0; fi
  say "compute-sanitizer --tool $1 is skipped because it fails on this machine: $(tail -n 3 <<<"$said" | tr '\n' ' ')"
  return 1
}

# Runs the tests of the GPU. Tests of the kernel (label cuda) run first, because the others depend on it.
gpu_tests() {
  local status=0 folder=build-gpu/tests/executor label
  for label in cuda perf device; do ctest_gpu $label || status=1; done
  if ! command -v compute-sanitizer >/dev/null; then
    say "compute-sanitizer is not installed; memcheck and racecheck are skipped"
    return $status
  fi
  if sanitizes memcheck; then
    sanitize memcheck $folder/executor_cuda_fold_test '*OfOneElement*:*MatchesCpuBits*/float32' || status=1
    sanitize memcheck $folder/executor_cuda_interpreter_test '*WithThreeRanks*/all_reduce_two_shot_mapped' || status=1
  fi
  if sanitizes racecheck; then
    sanitize racecheck $folder/executor_cuda_interpreter_test '*WithThreeRanks*/all_gather_ring' || status=1
  fi
  return $status
}

# Succeeds if this machine has a GPU, with or without nvidia-smi.
has_gpu() { nvidia-smi -L 2>/dev/null | grep -q GPU || [ -e /dev/nvidia0 ]; }

# Exit status: 0, 77 (built, but this machine has no GPU), or 1 (a build, a test or a measurement failed).
dev_gpu() {
  local deps architecture=native status=0 tests=gpu_tests keep_going=-k
  deps="$(realpath -m "${TUTTI_DEPS:-../deps}")"
  export PATH="$PATH:/usr/local/cuda/bin"
  if ! command -v nvcc >/dev/null; then
    say "nvcc is neither in PATH nor in /usr/local/cuda/bin; install the CUDA toolkit or add nvcc to PATH"
    exit 1
  fi
  need_gpu_build
  install_for_gpu || { status=1; tests=:; }
  has_gpu || architecture=90-real
  configure cuda build-gpu -B build-gpu -DCMAKE_CUDA_ARCHITECTURES="$architecture" -DTUTTI_DEPS="$deps" \
    -DTUTTI_TEST_SECONDS=40  # A test that hangs must leave time for the others.
  say "building in build-gpu for $architecture"
  [ ! -e build-gpu/build.ninja ] || keep_going=-k0
  if ! cmake --build build-gpu --parallel "$jobs" --target tutti_on_gpu -- "$keep_going"; then
    say "some targets failed to build (output above); continuing with the others"
    status=1
  fi
  if [ "$architecture" != native ]; then
    say "built for sm_90; nothing was run, because this machine has no GPU (none in nvidia-smi -L, no /dev/nvidia0)"
    exit $((status ? status : 77))
  fi
  "$tests" || status=1
  # Measurements get the rest of the 9 minutes, or 120 s after a slow build.
  local left=$((gpu_end - SECONDS))
  python3 perf/gpu/run.py --build build-gpu --deps "$deps" --command "tools/dev gpu" --seconds $((left > 120 ? left : 120)) "$@" ||
    status=1
  [ "$status" -eq 0 ] || say "a build, a test or a measurement failed; see the messages above"
  exit "$status"
}
