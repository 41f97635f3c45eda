# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Debian package on a running system. Installed, the service runs and is enabled; an upgrade restarts it without forgetting what
# the drive had before. Removed, it leaves the drive as it was, even with on_exit = "keep"; purged, it leaves nothing behind except
# what the administrator wrote. Not part of ctest, since it needs the package: packaging/debian/build DIRECTORY, then
# tests/vm/run-case package 6.12 DIRECTORY.
#: systemd
#: package
#: drives samsung-990-evo-plus-4tb
#: time 300
evo=samsung-990-evo-plus-4tb
package() { DEBIAN_FRONTEND=noninteractive dpkg "$@" >/tmp/dpkg.out 2>&1 || { cat /tmp/dpkg.out; return 1; }; }
is() { equal "$(systemctl is-enabled nvmepolicyd) $(systemctl is-active nvmepolicyd)" "$1"; }

before=$(now_ms)
check "it installs" package --install /rig/nvmepolicyd.deb
echo "dpkg --install: $(($(now_ms) - before)) ms"
check "enabled and running" is "enabled active"
check "the drive is served" wait_for 20 "[ \"\$(tolerance $evo)\" = 25000 ]"
status
check "and verified" expect "apst('$evo')['verified'] is True"
check "nvmepolicyctl finds its files" nvmepolicyctl config check

mkdir -p /etc/nvmepolicyd/nvmepolicyd.toml.d
printf '[daemon]\non_exit = "keep"\n' >/etc/nvmepolicyd/nvmepolicyd.toml.d/keep.toml
pid=$(systemctl show --property MainPID --value nvmepolicyd)
check "it is upgraded" package --install /rig/nvmepolicyd.deb
check "by a restart" test "$pid" != "$(systemctl show --property MainPID --value nvmepolicyd)"
check "enabled and running still" is "enabled active"
check "the drive is served still" wait_for 20 "[ \"\$(tolerance $evo)\" = 25000 ]"

check "the service stops" systemctl stop nvmepolicyd
check "and keeps the value, as it is told" equal "$(tolerance $evo)" 25000
systemctl start nvmepolicyd
check "it is removed" package --remove nvmepolicyd
check "the drive has what it had" equal "$(tolerance $evo)" 100000
check "no process is left" equal "$(pgrep -c nvmepolicy)" 0
check "the configuration stays" test -e /etc/nvmepolicyd/nvmepolicyd.toml.d/keep.toml

check "it is purged" package --purge nvmepolicyd
check "what the administrator wrote stays" test -e /etc/nvmepolicyd/nvmepolicyd.toml.d/keep.toml
check "nothing else is left" equal "$(ls -d /var/lib/nvmepolicyd /run/nvmepolicyd /usr/lib/nvmepolicyd \
	/lib/systemd/system/nvmepolicyd.service /etc/systemd/system/multi-user.target.wants/nvmepolicyd.service 2>/dev/null)" ""
