# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Drives that come and go. 200 connects and disconnects one after the other, most of them in the middle of a job: the service stays up,
# answers, leaves no process behind, does not grow, and serves the drive that is there in the end. A reset in the middle of a write, and
# a reconnect, after which the table is as it should be. QEMU's PCIe NVMe is plugged in and pulled out through the monitor. kill -9 at
# any moment of a job, a new start, and --restore: the original comes back.
#: drives samsung-970-evo-plus-2tb
#: late samsung-990-evo-plus-4tb
#: qemu -drive id=disk,if=none,driver=null-co,size=16M,read-zeroes=on
#: time 400
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb

start_service
check "the first drive is served" wait_for 10 "[ \"\$(tolerance $other)\" = 25000 ]"
before=$(pss)
count=200
began=$(now_ms)
while [ $count -gt 0 ]; do
	connect_late $evo && disconnect $evo
	count=$((count - 1))
done
echo "200 connects and disconnects in $((($(now_ms) - began) / 1000)) s"
connect_late $evo
check "the drive that is there in the end is served" wait_for 15 "[ \"\$(tolerance $evo)\" = 25000 ]"
status
check "both are verified" expect "apst('$evo')['verified'] is True" "apst('$other')['verified'] is True"
check "no process is left behind" wait_for 10 '! pidof nvmepolicy-device'
check "the log stays readable" test "$(wc -l </tmp/service.log)" -le 700
echo "PSS before $before kB, after $(pss) kB"

fault "\"op\": \"set_features\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 2, \"count\": 1"
configure <<'END'
[profiles.balanced]
max_wake_latency = "10ms"
END
reload
check "a write hangs" wait_for 15 hanging
echo 1 >"$(directory $evo)/reset_controller"
clear_faults
check "after a reset in the middle of a write" wait_for 20 "[ \"\$(tolerance $evo)\" = 10000 ] && [ \"\$(state $evo)\" = live ]"
check "the table is the one of the file" wait_for 20 "status; expect \"apst('$evo')['verified'] is True\" >/dev/null 2>&1"
softnvme "{\"do\": \"drop\", \"drive\": \"$evo\"}"
check "after a reconnect" wait_for 20 "[ \"\$(state $evo)\" = live ]"
check "still verified" wait_for 20 "status; expect \"apst('$evo')['verified'] is True\" >/dev/null 2>&1"

hmp "device_add nvme,serial=QEMU0001,drive=disk,id=pcie"
check "PCIe hot-plug is noticed" wait_for 20 "grep -q 'QEMU NVMe Ctrl, serial QEMU0001' /tmp/service.log"
hmp "device_del pcie"
check "and so is the unplug" wait_for 20 "grep -q 'left (QEMU NVMe Ctrl' /tmp/service.log"

count=12
while [ $count -gt 0 ]; do
	kill -9 $service
	wait $service 2>/dev/null
	rm -f /etc/nvmepolicyd/nvmepolicyd.toml
	[ $((count % 2)) = 0 ] || printf '[daemon]\nprofile = "performance"\n' >/etc/nvmepolicyd/nvmepolicyd.toml
	nvmepolicyd --bus none >>/tmp/service.log 2>&1 &
	service=$!
	usleep $((count * 23000))				# a job takes some 200 ms here
	count=$((count - 1))
done
kill -9 $service
wait $service 2>/dev/null
sleep 1
restore
check "kill -9 at twelve moments, then --restore" equal "$code $(tolerance $evo) $(tolerance $other)" "0 100000 100000"
