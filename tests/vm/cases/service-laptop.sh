# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A laptop's day. The plug is pulled, and the drive gets the bound for the battery once the plug has settled; so it does when it
# is put back. A plug that is wiggled ten times in two seconds, as a docking station does it, makes one Set Features, or none
# where it ends as it began. The configuration is replaced forty times by one or the other of two versions, each followed by
# SIGHUP, while somebody reads the drive: no version is ever read by half, and the last one counts. A faulty one after that keeps
# the running configuration, and says so.
#: drives samsung-990-evo-plus-4tb
#: modules test_power
evo=samsung-990-evo-plus-4tb
parameters=/sys/module/test_power/parameters

plug() { echo "$1" >$parameters/ac_online; }
wiggle() {		# TIMES: ends unplugged if that is odd
	_left=$1
	while [ "$_left" -gt 0 ]; do
		_left=$((_left - 1))
		if [ $((_left % 2)) = 0 ]; then plug off; else plug on; fi
		usleep 200000
	done
}
replace() {		# the configuration from standard input, whole at any moment; and SIGHUP
	cat >/etc/nvmepolicyd/new
	mv /etc/nvmepolicyd/new /etc/nvmepolicyd/nvmepolicyd.toml
	reload
}
bound() { printf '[profiles.balanced]\nmax_wake_latency_on_battery = "%s"\n' "$1" | replace; }
said() { grep -c "$1" /tmp/service.log; }

start_service
check "without a power supply: the bound for mains power" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"
modprobe test_power
plug on
echo off >$parameters/usb_online
echo discharging >$parameters/battery_status
sleep 3						# all that this has to say
check "plugged in: no change" equal "$(tolerance $evo)" 25000

reset_counts
plug off
check "unplugged: the bound for the battery" wait_for 10 "[ \"\$(tolerance $evo)\" = 100000 ]"
check "and the service says so" contains "on battery" /tmp/service.log
status
check "verified, by one Set Features" expect "apst('$evo')['verified'] is True" "status()['on_battery'] is True" \
	"table('$evo') == predicted('$evo', 100000)" "len(programmed('$evo')) == 1"
plug on
check "plugged in again: back" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"

sleep 2
reset_counts
turns=$(said 'on battery\|on AC')
wiggle 11
check "the plug was wiggled, and is out in the end" wait_for 10 "[ \"\$(tolerance $evo)\" = 100000 ]"
sleep 4						# for what should not come
check "one Set Features for eleven changes" expect "len(programmed('$evo')) == 1" "table('$evo') == predicted('$evo', 100000)"
check "one line about the power source" equal "$(($(said 'on battery\|on AC') - turns))" 1
reset_counts
wiggle 10
sleep 4
check "ten changes that end where they began: none" expect "programmed('$evo') == []" "table('$evo') == predicted('$evo', 100000)"

mkdir -p /etc/nvmepolicyd
reset_counts
while :; do dd if="/dev/$(name $evo)n1" of=/dev/null bs=4k count=64 iflag=direct 2>/dev/null || echo failed >>/tmp/reads; done &
reader=$!
turn=40
while [ $turn -gt 0 ]; do
	if [ $((turn % 2)) = 0 ]; then bound 5ms; else bound 25ms; fi
	usleep 50000
	turn=$((turn - 1))
done
check "forty versions: the last one counts" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"
bound 5ms
check "and the one after it" wait_for 10 "[ \"\$(tolerance $evo)\" = 5000 ]"
kill $reader
wait $reader 2>/dev/null
check "somebody read the drive all the time, without an error" expect \
	"count('$evo', 'read') > 100" "not os.path.exists('/tmp/reads')"
check "no version was read by half" equal "$(said 'nvmepolicyd.toml:')" 0
check "they were read" test "$(said 'the configuration was read again')" -ge 2
status
check "verified" expect "apst('$evo')['verified'] is True" "table('$evo') == predicted('$evo', 5000)"

replace <<'END'
[profiles.balanced]
max_wake_latency_on_battery = 25
END
check "a faulty version is named" wait_for 10 "grep -q 'nvmepolicyd.toml:2:.*max_wake_latency_on_battery' /tmp/service.log"
check "and the running configuration stays" contains "the one that is running stays" /tmp/service.log
plug on
check "also for what it says of mains power" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"
plug off
check "and of the battery" wait_for 10 "[ \"\$(tolerance $evo)\" = 5000 ]"
stop_service
check "clean exit, original back" equal "$code $(tolerance $evo)" "0 100000"
