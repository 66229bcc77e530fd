#!/bin/busybox sh
# Init process of the guest: loads modules, mounts the host's root file system as its own root, and runs guest.sh there.
# The host has written the file `settings` beside this file.
PATH=/bin
/bin/busybox --install -s /bin
for module in /modules/*; do insmod "$module" || echo "loading $module failed"; done
mkdir -p /dev /proc
mount -t devtmpfs dev /dev
mount -t proc proc /proc
until [ -c /dev/vport0p3 ]; do sleep 0.02; done  # The ports to the host appear a moment later.

# Writes stay in memory, so they are lost when the guest ends. `cache=loose` assumes that the files do not change meanwhile.
mkdir /host /layer /memory /new
nine() { mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose "$1" "/$1"; }
nine host && nine layer || echo "mounting the files of the host failed"
mount -t tmpfs -o mode=755 memory /memory
mkdir /memory/upper /memory/work
mount -t overlay -o lowerdir=/layer:/host,upperdir=/memory/upper,workdir=/memory/work overlay /new

mkdir -p /new/dev /new/proc /new/sys /new/run
mount -o move /dev /new/dev
mount -o move /proc /new/proc
mount -t sysfs sysfs /new/sys
mount -t tmpfs -o mode=755 run /new/run
mkdir -p /new/dev/pts /new/dev/shm
mount -t devpts devpts /new/dev/pts
mount -t tmpfs shm /new/dev/shm
ln -s /proc/self/fd /new/dev/fd
ln -s fd/0 /new/dev/stdin
ln -s fd/1 /new/dev/stdout
ln -s fd/2 /new/dev/stderr
cp /guest.sh /settings /new/run
exec switch_root /new /bin/bash /run/guest.sh
