# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The running service. It serves what is there when it starts; a controller that connects later is served and verified within a
# second of `connected` (each command is printed with its time, beside what they cost by themselves); a reload with another
# profile at once, while a faulty file keeps the running configuration and says so; a value that somebody else writes stays
# (yield), and a script that writes all the time makes a handful of log lines. A table that the drive loses is not noticed without
# an event and repaired at the next look. A second instance is refused. SIGTERM puts everything back and ends the process at once.
#: drives samsung-990-evo-plus-4tb
#: late samsung-970-evo-plus-2tb
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb

python3 /rig/command-cost.py "$(name $evo)"
start_service
check "the drive that was there is served" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"
status
check "and verified" expect "apst('$evo')['verified'] is True" "table('$evo') == predicted('$evo', 25000)"
nvmepolicyd --once >/tmp/second.out 2>&1
check "a second instance is refused" contains "another nvmepolicyd is running" /tmp/second.out

connect_late $other
check "hot-plug is served" wait_for 10 "[ \"\$(tolerance $other)\" = 25000 ]"
sleep 1
expect "all(print('%6.0f ms after the last Connect: %s' % step) is None for step in hot_plug('$other'))"
check "hot-plug: look, write, verify" expect "[command for _, command in hot_plug('$other')][:4] == \
	['Identify Controller', 'Get Features 0Ch', 'Set Features 0Ch', 'Get Features 0Ch']"
check "hot-plug: verified within a second" expect "hot_plug('$other')[3][0] < 1000"
status
check "and verified" expect "apst('$other')['verified'] is True" "table('$other') == predicted('$other', 25000)"
check "three lines or fewer about it" test "$(grep -c "$(name $other):" /tmp/service.log)" -le 3

configure <<'END'
[daemon]
profile = "performance"
END
reload
check "another profile: APST off" wait_for 10 "[ \"\$(tolerance $evo)\" = 0 ] && [ \"\$(tolerance $other)\" = 0 ]"
configure <<'END'
[daemon]
profle = "balanced"
END
reload
check "a faulty file is named" wait_for 10 "grep -q 'nvmepolicyd.toml:2:1: daemon.profle' /tmp/service.log"
check "and the running configuration stays" contains "the one that is running stays" /tmp/service.log
check "nothing changed" equal "$(tolerance $evo)" 0
rm -f /etc/nvmepolicyd/nvmepolicyd.toml
reload
check "back to the default" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"

lines=$(wc -l </tmp/service.log)
set_tolerance $evo 60000
check "a foreign value is noticed" wait_for 10 "grep -q 'somebody else set the latency tolerance to 60000, ours was 25000' /tmp/service.log"
count=30
while [ $count -gt 0 ]; do
	set_tolerance $evo 60000
	sleep 0.1
	count=$((count - 1))
done
check "theirs stays" equal "$(tolerance $evo)" 60000
check "30 writes: no more than three lines" test $(($(wc -l </tmp/service.log) - lines)) -le 3
configure </dev/null
reload
check "a reload claims it back" wait_for 10 "[ \"\$(tolerance $evo)\" = 25000 ]"

sleep 8						# the last look after all that writing
first=$(tasks)
sleep 20
second=$(tasks)
echo "voluntary context switches of all threads over 20 idle seconds: $((second - first)); PSS $(pss) kB"
check "idle: no wake-ups" equal $((second - first)) 0

before=$(now_ms)
stop_service
echo "SIGTERM to end: $(($(now_ms) - before)) ms"
check "clean exit" equal "$code" 0
check "the original is back, or what somebody lowered it to" equal "$(tolerance $evo) $(tolerance $other)" "60000 100000"
check "within three seconds" test $(($(now_ms) - before)) -lt 3500
