# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The service under a real systemd, as it is installed, in its sandbox. Systemd finds nothing to complain about in the unit. The
# service starts when it says READY, serves a drive that was there and one that is plugged in later, reloads, and tells the journal
# what it changed, in fields. Killed, it comes back, and so it does when it hangs, by the watchdog; the values are right afterwards,
# and what the drives had at first is not forgotten. `systemctl stop` puts that back, and takes seconds, not a minute, while a drive
# hangs in the kernel. A driver that is loaded after the service is no obstacle. In the sandbox there are no other devices and
# nothing to write to but the tolerance files and our own.
#: systemd
#: drives samsung-990-evo-plus-4tb
#: late samsung-970-evo-plus-2tb
#: time 300
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb
changed=00633256e25f471d8fe2c4e12b5eadad		# MESSAGE_ID of a change

property() { systemctl show --property "$1" --value nvmepolicyd; }
is_active() { equal "$(property ActiveState)" active; }
drop_in() {		# NAME: lines for [Service] from standard input
	mkdir -p /run/systemd/system/nvmepolicyd.service.d
	{ echo "[Service]"; cat; } >"/run/systemd/system/nvmepolicyd.service.d/$1.conf"
	systemctl daemon-reload
}
timed() {		# COMMAND…: how long it took, in $took
	_before=$(now_ms)
	"$@" || echo "$* failed"
	took=$(($(now_ms) - _before))
}
comes_back() {		# TEXT OLD-PID: another process, and both values as before
	check "$1: it is started again" wait_for 30 \
		"_pid=\$(property MainPID); [ \"\$_pid\" != 0 ] && [ \"\$_pid\" != $2 ] && is_active >/dev/null"
	check "$1: both values are right" wait_for 20 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '25000 25000' ]"
}

unit=$(property FragmentPath)
systemd-analyze verify --man=no "$unit" >/tmp/verify.out 2>&1
check "systemd-analyze verify is silent" equal "$? $(cat /tmp/verify.out)" "0 "
systemd-analyze security --no-pager nvmepolicyd.service >/tmp/security.out 2>&1
grep Overall /tmp/security.out
check "exposure is 2.0 or less" systemd-analyze security --no-pager --threshold=20 nvmepolicyd.service

# A probe that runs where the service runs.
cat >/run/probe.sh <<'END'
can() { if "$@" >/dev/null 2>&1; then echo "can $*"; else echo "cannot $*"; fi; }
{
	can head -c 1 /dev/vda
	can head -c 1 /dev/kmsg
	can touch /etc/probe
	can touch /var/lib/probe
	can touch /var/lib/nvmepolicyd/probe
	can head -c 1 /proc/cmdline
	can sh -c 'cat /sys/kernel/uevent_seqnum >/sys/kernel/uevent_helper'
	can sh -c 'cat /sys/module/nvme_core/parameters/admin_timeout >/sys/module/nvme_core/parameters/admin_timeout'
	can sh -c 'grep -H . /sys/devices/system/cpu/smt/control && echo on >/sys/devices/system/cpu/smt/control'
} >/run/nvmepolicyd/probe 2>&1
END
drop_in probe <<'END'
ExecStartPost=/bin/sh /run/probe.sh
END

timed systemctl enable --quiet --now nvmepolicyd
echo "systemctl enable --now, with the probe: $took ms"
check "it is active" is_active
check "it said that it follows the machine" equal "$(property StatusText)" "Following the machine"
check "in the sandbox: nothing but our own directories can be written, no other device read" \
	equal "$(grep '^can ' /run/nvmepolicyd/probe)" "can touch /var/lib/nvmepolicyd/probe"
check "the probe ran to its end" equal "$(wc -l </run/nvmepolicyd/probe)" 9
rm /var/lib/nvmepolicyd/probe /run/systemd/system/nvmepolicyd.service.d/probe.conf
systemctl daemon-reload

check "the drive that was there is served" wait_for 20 "[ \"\$(tolerance $evo)\" = 25000 ]"
connect_late $other
check "a drive that is plugged in is served" wait_for 20 "[ \"\$(tolerance $other)\" = 25000 ]"
echo "the journal of the hot-plug, in seconds since boot:"
journalctl --quiet --no-hostname -o short-monotonic _TRANSPORT=kernel + NVME_CONTROLLER="$(name $other)" | grep "$(name $other): "
status
check "both are verified" expect "[apst(s)['verified'] for s in ('$evo', '$other')] == [True, True]" \
	"table('$evo') == predicted('$evo', 25000)" "table('$other') == predicted('$other', 25000)"
check "anyone may read the ledger" equal "$(stat -c %a /run/nvmepolicyd /run/nvmepolicyd/originals.json)" "755
644"

check "the change is in the journal" wait_for 10 \
	"journalctl -u nvmepolicyd -o json MESSAGE_ID=$changed NVME_CONTROLLER=\$(name $evo) >/tmp/journal.json
	[ -s /tmp/journal.json ]"
check "with its fields" expect \
	"[(e['ATTRIBUTE'], e['FROM'], e['TO']) for e in map(json.loads, text('/tmp/journal.json').splitlines())] \
		== [('power/pm_qos_latency_tolerance_us', '100000', '25000')]" \
	"all('$(name $evo): latency tolerance 100000 -> 25000' in e['MESSAGE'] and e['PRIORITY'] == '6' \
		and e['_SYSTEMD_UNIT'] == 'nvmepolicyd.service' for e in map(json.loads, text('/tmp/journal.json').splitlines()))"

configure <<'END'
[daemon]
profile = "performance"
END
systemctl reload nvmepolicyd
check "reload: another profile" wait_for 20 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '0 0' ]"
check "and active again" wait_for 10 is_active
rm /etc/nvmepolicyd/nvmepolicyd.toml
systemctl reload nvmepolicyd
check "reload: and back" wait_for 20 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '25000 25000' ]"

pid=$(property MainPID)
kill -9 "$pid"
comes_back "killed" "$pid"
journalctl -u nvmepolicyd -t nvmepolicyd -o cat >/tmp/journal.txt
check "killed: what there was before us is put back on the way" \
	contains 'original latency tolerance 100000 put back' /tmp/journal.txt

drop_in watchdog <<'END'
WatchdogSec=5
END
timed systemctl restart nvmepolicyd
echo "systemctl restart: $took ms, memory $(property MemoryCurrent) bytes"
check "restart: both values" wait_for 20 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '25000 25000' ]"
pid=$(property MainPID)
before=$(now_ms)
kill -STOP "$pid"
comes_back "stopped by SIGSTOP" "$pid"
echo "SIGSTOP until served again, with WatchdogSec=5: $(($(now_ms) - before)) ms"
journalctl -u nvmepolicyd -o cat >/tmp/journal.txt
check "it was the watchdog" contains 'Watchdog timeout' /tmp/journal.txt

timed systemctl stop nvmepolicyd
echo "systemctl stop: $took ms"
check "stop: within five seconds" test $took -lt 5000
check "stop: the originals are back" equal "$(tolerance $evo) $(tolerance $other)" "100000 100000"
check "stop: it ended well" equal "$(property ActiveState) $(property Result)" "inactive success"

systemctl start nvmepolicyd
check "started again" wait_for 20 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '25000 25000' ]"
fault "\"op\": \"set_features\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 20, \"count\": 1"
configure <<'END'
[daemon]
profile = "power-saver"
END
systemctl reload nvmepolicyd
check "a drive hangs in Set Features" wait_for 15 hanging
timed systemctl stop nvmepolicyd
echo "systemctl stop while a drive hangs: $took ms; $(property ActiveState), processes left in the kernel: $(pgrep -c nvmepolicy-devi)"
check "hang: stop within ten seconds" test $took -lt 10000
check "hang: the ledger is kept" test -s /run/nvmepolicyd/originals.json
rm /etc/nvmepolicyd/nvmepolicyd.toml
timed systemctl start nvmepolicyd
echo "systemctl start while it still hangs: $took ms"
check "hang: it starts all the same" is_active
check "hang: both are served once the drive answers" wait_for 60 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '25000 25000' ]"
check "hang: and no process is left behind" wait_for 20 "! pgrep nvmepolicy-devi >/dev/null"
systemctl stop nvmepolicyd
check "hang: the originals are back after all" equal "$(tolerance $evo) $(tolerance $other)" "100000 100000"

disconnect $evo
disconnect $other
check "without the driver, the kernel has no number for it" \
	wait_for 20 "modprobe -r nvme-tcp nvme 2>/dev/null; ! grep -q 'nvme$' /proc/devices"
systemctl start nvmepolicyd
modprobe nvme-tcp
connect_late $evo
check "a service that came before the driver may use its devices" wait_for 20 "[ \"\$(tolerance $evo)\" = 25000 ]"
