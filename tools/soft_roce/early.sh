#!/bin/busybox sh
# The guest's first process: loads modules, makes the host's root file system its own, and goes on there with guest.sh.
# `settings` is what the host wrote beside this file.
PATH=/bin
/bin/busybox --install -s /bin
for module in /modules/*; do insmod "$module" || echo "$module could not be loaded"; done
mkdir -p /dev /proc
mount -t devtmpfs dev /dev
mount -t proc proc /proc
until [ -c /dev/vport0p3 ]; do sleep 0.02; done  # The ports to the host come by themselves, a moment later.

# Writes go to memory, and so end with the guest. `cache=loose`: nobody changes these files meanwhile.
mkdir /host /layer /memory /new
nine() { mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose "$1" "/$1"; }
nine host && nine layer || echo "the host's files cannot be mounted"
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
