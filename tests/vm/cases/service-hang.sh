# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A drive that hangs. One drive answers no Get Features for 20 s: the other one is served meanwhile, `nvmepolicyctl status` answers
# within its two seconds and says what it could not read, and the sick drive gets the policy that is valid when it answers. One drive
# hangs in the Set Features of a tolerance write, while the kernel holds the lock that all tolerance files share: the other one is
# served as soon as the kernel lets anyone through, and SIGTERM ends the process within three seconds all the same; what could not be
# put back then is put back by --restore later.
#: drives samsung-970-evo-plus-2tb
#: late samsung-990-evo-plus-4tb
#: time 300
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb

timed_status() {	# answers within 2 s of guest time, give or take the emulated processor
	_before=$(now_ms)
	nvmepolicyctl status >/tmp/status.txt 2>/tmp/status.err
	_took=$(($(now_ms) - _before))
	echo "$1: status answered after $_took ms"
	check "$1: status answers in time" test $_took -lt 4000
}

fault "\"op\": \"get_features\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 20, \"count\": 2"
start_service
check "the healthy drive is served" wait_for 10 "[ \"\$(tolerance $other)\" = 25000 ]"
connect_late $evo
check "the sick drive hangs" wait_for 15 hanging
timed_status "Get Features hangs"
check "status says what it could not read" contains "Get Features 0Ch: no answer\|earlier request has not come back" /tmp/status.txt
configure <<'END'
[daemon]
profile = "performance"
END
reload
check "the healthy drive follows a reload meanwhile" wait_for 10 "[ \"\$(tolerance $other)\" = 0 ]"
check "and the log says who does not answer" wait_for 10 "grep -q '$(name $evo): has not answered for 5 s' /tmp/service.log"
check "the sick drive gets what is valid when it answers" wait_for 40 "[ \"\$(tolerance $evo)\" = 0 ]"
check "and never got anything else" expect "[p['apste'] for p in programmed('$evo')] == [1, 0]"
check "the log says that it answers again" wait_for 10 "grep -q '$(name $evo): answers again' /tmp/service.log"
clear_faults

fault "\"op\": \"set_features\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 20, \"count\": 1"
rm -f /etc/nvmepolicyd/nvmepolicyd.toml
reload
check "the drive hangs in Set Features" wait_for 15 hanging
timed_status "Set Features hangs"
check "the healthy drive is served once the kernel lets anyone through" wait_for 60 \
	"expect \"apst('$other')['tolerance_us'] == 25000\" >/dev/null 2>&1 || { status; false; }"
clear_faults

fault "\"op\": \"set_features\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 20, \"count\": 1"
configure <<'END'
[daemon]
profile = "power-saver"
END
reset_counts
reload
check "the drive hangs in Set Features again" wait_for 15 hanging
before=$(now_ms)
stop_service
took=$(($(now_ms) - before))
echo "SIGTERM while the kernel's lock is held: ended after $took ms"
check "SIGTERM ends the process within three seconds" test $took -lt 3500
sleep 22
restore
check "--restore puts the rest back" equal "$code $(tolerance $evo) $(tolerance $other)" "0 100000 100000"
