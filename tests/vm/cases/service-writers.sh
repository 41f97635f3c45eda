# SPDX-License-Identifier: LGPL-2.1-or-later
#
# on_conflict = "enforce" against others who write the same file. A script that writes ten times a second is written over three
# times, with growing pauses, and has its way then, until somebody asks for our values; it makes a handful of log lines, not
# hundreds. Somebody who writes once, as a tool does at plug and unplug, is written over at once. That the default, "yield",
# leaves theirs is in service.sh.
#: drives samsung-990-evo-plus-4tb
evo=samsung-990-evo-plus-4tb

fights() {		# Python: when our table was sent, in seconds
	echo "[p['t'] for p in programmed('$evo') if normal(p['apste'], p['entries']) == predicted('$evo', 25000)]"
}
lines() { grep -c "$(name $evo):" /tmp/service.log; }

configure <<'END'
[apst]
on_conflict = "enforce"
END
start_service
check "served" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"

reset_counts
before=$(lines)
while :; do
	set_tolerance $evo 0
	usleep 100000
done &
writer=$!
check "a script: ours is written three times" wait_for 40 "expect \"len($(fights)) == 3\""
check "both values are named" contains \
	'somebody else set the latency tolerance to 0, ours was 25000; ours is written again' /tmp/service.log
check "and then theirs stays" wait_for 20 "grep -q 'theirs stays until the profile or the configuration changes' /tmp/service.log"
sleep 12
check "for good" expect "len($(fights)) == 3" "table('$evo') == (0, [])"
check "the pauses grow: two seconds, then eight" expect "$(fights)[1] - $(fights)[0] > 1.8" "$(fights)[2] - $(fights)[1] > 7.5"
echo "$(($(lines) - before)) lines about it"
check "no more than ten lines" test $(($(lines) - before)) -le 10
kill $writer
wait $writer 2>/dev/null
check "theirs is in the file" equal "$(tolerance $evo)" 0

reload
check "a reload claims it back" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"
sleep 6						# the window in which writes are counted
reset_counts
set_tolerance $evo 0
check "one write: ours is there again" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"
check "the drive has got both tables" expect "len(programmed('$evo')) == 2" "table('$evo') == predicted('$evo', 25000)"
status
check "verified" expect "apst('$evo')['verified'] is True"
stop_service
check "what somebody had lowered it to is put back" equal "$code $(tolerance $evo)" "0 0"
