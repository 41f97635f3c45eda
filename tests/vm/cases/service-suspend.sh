# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Suspend to memory, for real: the machine sleeps for some seconds until its clock wakes it, and QEMU's PCIe drive goes through a
# reset meanwhile. After it the service looks again at every drive: one that has lost its table, and sent no event, gets it back,
# after the second sleep as after the first. Three resets put a drive back that is allowed into deeper sleep than at boot; not so
# when they come with a resume, in whichever order the service gets to know of the two. (suspend-to-idle is not tested: nothing
# ends it in this machine, and without a cpuidle driver it does not stop the clock.)
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb
#: boot nvme_core.default_ps_max_latency_us=5500
#: qemu -drive id=disk,if=none,driver=null-co,size=16M,read-zeroes=on -device nvme,serial=QEMU0001,drive=disk,id=pcie
#: time 240
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb

sleep_and_wake() {
	umount /share				# neither 9p nor its driver survives it
	modprobe -r 9p 9pnet_virtio
	_clock=$(date +%s)
	echo 0 >/sys/class/rtc/rtc0/wakealarm
	echo +4 >/sys/class/rtc/rtc0/wakealarm
	echo mem >/sys/power/state
	echo "slept $(($(date +%s) - _clock)) s"
	modprobe -a 9pnet_virtio 9p
	mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /share
}
reset_thrice() {	# SLUG
	for _turn in 1 2 3; do
		echo 1 >"$(directory "$1")/reset_controller"
		check "$1: reset $_turn" wait_live "$1"
		sleep 0.5				# for the service's look
	done
}
lose_table() { softnvme "{\"do\": \"set_apst_table\", \"drive\": \"$1\", \"apste\": 0}"; }
pcie_inits() { dmesg | grep -c "$pcie: .*default/read/poll queues"; }
tripped() { status; expect "apst('$1')['breaker_tripped'] is $2"; }

configure <<'END'
[daemon]
profile = "power-saver"
[[match]]
model = "Samsung*"
[match.apst]
allow_deeper = true
END
start_service
check "both are let deeper than at boot" wait_for 10 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = 'any any' ]"
check "the PCIe drive is there" wait_for 20 'grep -q pcie /sys/class/nvme/nvme*/transport'
pcie=$(basename "$(dirname "$(grep -l pcie /sys/class/nvme/nvme*/transport)")")

wait_for 40 '[ "$(now_ms)" -gt 31000 ]'	# a start is as restless as a resume
reset_thrice $other
check "three resets: back to what it had at boot" wait_for 10 "[ \"\$(tolerance $other)\" = 5500 ]"
check "and it says so" tripped $other True

kill -STOP $service
restless=$(($(now_ms) + 31000))
date -s "@$(($(date +%s) + 100))" >/dev/null	# what a resume does to the clock
reset_thrice $evo
kill -CONT $service
sleep 2
check "three resets and a resume, seen at once: not held against the drive" tripped $evo False
check "it keeps its tolerance" equal "$(tolerance $evo)" any

wait_for 40 '[ "$(now_ms)" -gt $restless ]'	# or that would be what the next resets are excused by
inits=$(pcie_inits)
lose_table $evo
sleep 1
check "nobody notices that a table is lost" expect "table('$evo') == (0, [])"
sleep_and_wake
check "resumed: the lost table is back" wait_for 15 "expect \"table('$evo') == predicted('$evo', 'any')\""
status
check "verified" expect "apst('$evo')['verified'] is True" "apst('$other')['verified'] is True"
check "the PCIe drive was reset, and is live" test "$(pcie_inits)" -gt "$inits" -a "$(cat "/sys/class/nvme/$pcie/state")" = live
check "its look was no failure" expect "over_pcie()[0]['state'] == 'live'"
reset_thrice $evo
check "three resets after a resume: not held against the drive" tripped $evo False
check "it keeps its tolerance" equal "$(tolerance $evo)" any

lose_table $other
sleep_and_wake
check "resumed again: the lost table is back" wait_for 15 "expect \"table('$other') == predicted('$other', 5000)\""
check "nobody was blamed for a write" equal "$(grep -c 'somebody else' /tmp/service.log)" 0
stop_service
check "clean exit, originals back" equal "$code $(tolerance $evo) $(tolerance $other)" "0 5500 5500"
