# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A drive disappears in the middle of a run: while it hangs in Get Features 0Ch, and while it hangs in the Set Features that the
# write of its tolerance causes. That is `gone`, no crash and no failed policy; the other drive is served. QEMU's PCIe NVMe is
# pulled out (hot-unplug) while a run is under way as well.
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb
#: qemu -drive id=disk,if=none,driver=null-co,size=16M,read-zeroes=on -device nvme,serial=QEMU0001,drive=disk,id=pcie
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb

unplug_in() {	# COMMAND MONITOR-COMMAND
	reset_counts
	fault "\"op\": \"$1\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 3, \"count\": 1"
	nvmepolicyd --once >/tmp/once.out 2>&1 &
	daemon=$!
	check "$1: the drive hangs" wait_for 15 hanging
	[ -z "$2" ] || hmp "$2"
	disconnect $evo
	wait $daemon
	code=$?
	clear_faults
	status
	check "$1: ended by itself, no failed policy" exit_code 0
	check "$1: says that it is gone" contains gone /tmp/once.out
	check "$1: gone from status" expect "[c for c in status()['controllers'] if c['subsystem_nqn'] == NQN + '$evo'] == []"
	check "$1: the other drive is served" expect "apst('$other')['verified'] is True" "table('$other') == predicted('$other', 25000)"
}

wait_for 20 'grep -q pcie /sys/class/nvme/nvme*/transport'
unplug_in get_features "device_del pcie"
check "the PCIe drive is gone" wait_for 15 '! grep -q pcie /sys/class/nvme/nvme*/transport'
set_tolerance $other 100000
connect_late $evo
unplug_in set_features ""
