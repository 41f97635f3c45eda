# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A udev rule that writes a fixed tolerance, as many wiki pages have it. A value that is there at first sight is a ceiling; one
# that comes after ours, as with `udevadm trigger`, is somebody else's, and stays. At `add` of a new controller the file may not
# be there yet; a rule that also fires at `change` has written before the service acts on a hot-plug, so that it is a ceiling
# there too, and no fight. Where it is not to be obeyed, allow_deeper lifts it, and "enforce" holds it off. Texts that are no
# plain number are read as the kernel reads them.
#: drives samsung-990-evo-plus-4tb
#: late samsung-970-evo-plus-2tb kingston-kc3000-4tb
#: udev
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb third=kingston-kc3000-4tb

rule() {		# ACTIONS TEXT
	mkdir -p /etc/udev/rules.d
	echo "ACTION==\"$1\", SUBSYSTEM==\"nvme\", KERNEL==\"nvme[0-9]*\", ATTR{power/pm_qos_latency_tolerance_us}=\"$2\"" \
		>/etc/udev/rules.d/99-nvme-latency.rules
	restart_udev
}
restart_udev() {	# `udevadm control --reload` may leave a worker with the old rules
	udevadm control --exit
	wait_for 10 '! pidof systemd-udevd >/dev/null'
	/usr/lib/systemd/systemd-udevd --daemon
}
trigger() { udevadm trigger --action=add --subsystem-match=nvme; udevadm settle --timeout=20; }

check "udevd runs" udevadm control --ping
rule add 0x1388
trigger
check "the rule has written" equal "$(tolerance $evo)" 5000
start_service
check "it is a ceiling, and said to be one" wait_for 10 \
	"grep -q 'LIMITED by 5000 found in power/pm_qos_latency_tolerance_us at first sight' /tmp/service.log"
sleep 1
status
check "and is not exceeded" expect "apst('$evo')['tolerance_us'] == 5000" "apst('$evo')['ceiling_us'] == 5000" \
	"apst('$evo')['verified'] is True" "table('$evo') == predicted('$evo', 5000)"

rm /etc/udev/rules.d/*
restart_udev
connect_late $other
check "hot-plug without a rule: served" wait_for 10 "[ \"\$(tolerance $other)\" = 25000 ]"
rule add 0x1388
trigger
check "a rule that comes later is somebody else" wait_for 10 \
	"grep -q '$(name $other): somebody else set the latency tolerance to 5000, ours was 25000; theirs stays' /tmp/service.log"
check "theirs stays" equal "$(tolerance $other)" 5000

rule 'add|change' 3000
connect_late $third
udevadm settle --timeout=20
check "a rule for change has written first: a ceiling" wait_for 10 \
	"grep -q '$(name $third): .*LIMITED by 3000 found in' /tmp/service.log"
sleep 1
status
check "not exceeded, and verified" expect "apst('$third')['tolerance_us'] == 3000" "apst('$third')['ceiling_us'] == 3000" \
	"apst('$third')['verified'] is True"
check "no fight about it" equal "$(grep -c "$(name $third): somebody else" /tmp/service.log)" 0

configure <<'END'
[[match]]
model = "*"
[match.apst]
allow_deeper = true
END
reload
check "allow_deeper lifts them" wait_for 10 "[ \"\$(tolerance $evo) \$(tolerance $other) \$(tolerance $third)\" = '25000 25000 25000' ]"
echo 1 >"$(directory $third)/reset_controller"
check "after a reset the rule writes again, and theirs stays" wait_for 10 \
	"grep -q '$(name $third): somebody else set the latency tolerance to 3000, ours was 25000; theirs stays' /tmp/service.log"
check "theirs is in the file" equal "$(tolerance $third)" 3000
cat >>/etc/nvmepolicyd/nvmepolicyd.toml <<'END'
on_conflict = "enforce"
END
reload
check "enforce claims it back" wait_for 10 "[ \"\$(tolerance $third)\" = 25000 ]"
echo 1 >"$(directory $third)/reset_controller"
check "and holds the rule off at the next reset" wait_for 10 \
	"grep -q '$(name $third): somebody else set the latency tolerance to 3000, ours was 25000; ours is written again' /tmp/service.log"
check "ours is in the file" wait_for 10 "[ \"\$(tolerance $third)\" = 25000 ]"
status
check "verified" expect "apst('$third')['verified'] is True" "table('$third') == predicted('$third', 25000)"

stop_service
check "clean exit" equal "$code" 0
check "what the rule had lowered it to is put back" equal "$(tolerance $evo) $(tolerance $other) $(tolerance $third)" "5000 5000 3000"
rule add auto
trigger
check "a rule that writes auto" equal "$(tolerance $evo)" auto
start_service
check "is no limit" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"
stop_service
check "and auto is put back as it was found" equal "$code $(tolerance $evo)" "0 auto"
