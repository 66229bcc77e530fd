#!/usr/bin/env bash
# clean_root.sh <build folder>: installs the Debian packages of <build folder>/debs (debs.sh makes them) in a new Debian
# system, compiles and runs the C example there, and removes the packages. The system is made once by debootstrap and kept in
# <build folder>/debs_root. Skipped without root, debootstrap or a mirror.
set -euo pipefail
build="$1"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "$*"; exit 1; }

[ "$(id -u)" -eq 0 ] || skip "needs root, for chroot"
command -v debootstrap >/dev/null || skip "no debootstrap (Debian: apt-get install debootstrap)"
suite="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")"
mirror="$(apt-get indextargets 'Created-By: Packages' --format '$(REPO_URI) $(RELEASE)' | awk -v suite="$suite" '$2 == suite { print $1; exit }')"
[ -n "$mirror" ] || skip "apt has no mirror of '$suite'; run apt-get update"

# The system, with what compiling needs.
kept="$build/debs_root/$suite.tar" root="$build/debs_root/root"
rm -rf "$root"
mkdir -p "$build/debs_root"
trap 'rm -rf "$root"' EXIT
if [ ! -f "$kept" ]; then
  echo "making a system of $suite from $mirror"
  debootstrap --variant=minbase --include=gcc,libc6-dev,pkg-config "$suite" "$root" "$mirror" >"$kept.log" 2>&1 ||
    skip "debootstrap failed: $(tail -n 3 "$kept.log")"
  rm -rf "$root"/var/cache/apt/archives/*.deb
  tar -C "$root" -cf "$kept.new" . && mv "$kept.new" "$kept"
else
  mkdir "$root" && tar -C "$root" -xf "$kept"
fi
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C "$@"; }

# dpkg installs nothing else, so it fails if a dependency is missing in the control file's list or in the system.
mkdir "$root/debs"
cp "$build"/debs/*.deb "$here/../../examples/c/two_processes.c" "$root/debs"
inside sh -c 'dpkg --install /debs/*.deb'
cached="$(inside ldconfig -p)"
[[ "$cached" == *libtutti.so.0* ]] || fail "the loader does not find libtutti.so.0"
[[ "$cached" != *libnccl* ]] || fail "the loader finds libnccl.so.2 although no program asks for it"
inside tutti --version
inside tutti estimate --parameters 25M --ranks 4 --link 10Gbit --compute 300ms
if [ -x "$root/usr/bin/all_reduce_perf" ]; then inside all_reduce_perf --ranks 2 -b 8 -e 64K -f 8 -n 1; fi
inside sh -c 'cc -std=gnu99 /debs/two_processes.c $(pkg-config --cflags --libs tutti) -o /debs/two_processes && /debs/two_processes'

inside dpkg --purge tutti-tools libtutti-dev libtutti0
rm -rf "$root/debs"
left="$(find "$root" -iname '*tutti*')"
[ -z "$left" ] || fail "files are left after the packages were removed: $left"
