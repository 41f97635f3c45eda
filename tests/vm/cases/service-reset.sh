# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Drives that are not the same after a reset. A drive comes back from a lost connection with other firmware and other power
# states: it is decided anew, by the [[match]] of that firmware and by the new states. Firmware that has no APST takes the
# tolerance file away, and that is no error; the next one brings it back reading "auto", and the drive is served again. New
# firmware that comes with a reset in the middle of a write counts too. Two drives change places, so that each gets the other's
# name, while the service runs, while it has been killed, and before a restore: each gets its own tolerance, and neither the
# other's original.
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb
#: late crucial-p5-500gb
#: time 240
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb third=crucial-p5-500gb

comes_back_with() {	# SLUG '"firmware": …': new firmware while the connection is lost
	softnvme "{\"do\": \"refuse\", \"drive\": \"$1\", \"mode\": \"tcp\"}"
	softnvme "{\"do\": \"drop\", \"drive\": \"$1\"}"
	check "$2: the connection is lost" wait_for 15 "[ \"\$(state $1)\" = connecting ]"
	softnvme "{\"do\": \"firmware\", \"drive\": \"$1\", $2}"
	softnvme "{\"do\": \"refuse\", \"drive\": \"$1\", \"mode\": null}"
	check "$2: it comes back" wait_live "$1"
}
settles() {		# TEXT EXPRESSION…: the next status for which all of it is true
	_text=$1
	shift
	check "$_text" wait_for 20 "status; expect $(quoted "$@")"
}
quoted() { for _word; do printf '"%s" ' "$_word"; done; }
change_places() {	# disconnects both and connects them the other way round
	_first=$(name $evo) _second=$(name $other)
	disconnect $evo
	disconnect $other
	check "both have left" wait_for 10 "! directory $evo && ! directory $other"
	if [ "${_first#nvme}" -lt "${_second#nvme}" ]; then set -- $other $evo; else set -- $evo $other; fi
	connect_late "$1"
	connect_late "$2"
	check "the names have changed places" equal "$(name $evo) $(name $other)" "$_second $_first"
}

configure <<'END'
[[match]]
firmware = "2B2QKXG7"
[match.profiles.balanced]
max_wake_latency = "5ms"
[[match]]
model = "Samsung SSD 970 EVO Plus*"
[match.profiles.balanced]
max_wake_latency = "2ms"
END
start_service
check "each its own tolerance" wait_for 10 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '5000 2000' ]"

comes_back_with $evo '"firmware": "NEW1"'
settles "NEW1: no [[match]] any more" "apst('$evo')['tolerance_us'] == 25000" "apst('$evo')['verified'] is True" \
	"controller('$evo')['firmware'] == 'NEW1'" "table('$evo') == predicted('$evo', 25000)"
check "the log introduces it anew" contains "$(name $evo): .*firmware NEW1" /tmp/service.log
comes_back_with $evo "\"like\": \"$third\""
settles "other power states" "apst('$evo')['verified'] is True" "apst('$evo')['deepest_state'] == 3" \
	"table('$evo') == predicted('$third', 25000)"
comes_back_with $evo "\"like\": \"$other\""
settles "and others again, with a deeper one within the bound" "apst('$evo')['verified'] is True" \
	"apst('$evo')['deepest_state'] == 4" "table('$evo') == predicted('$other', 25000)"

comes_back_with $evo '"apsta": 0'
check "without APST: no tolerance file" wait_for 10 "[ ! -e \"\$(directory $evo)/\$TOLERANCE\" ]"
settles "without APST: that is what status says" "controller('$evo')['apst']['supported'] is False"
comes_back_with $evo '"apsta": 1'
settles "APST again, where the kernel has forgotten the tolerance" "apst('$evo')['tolerance_us'] == 25000" \
	"apst('$evo')['verified'] is True" "table('$evo') == predicted('$other', 25000)"
check "that was no foreign write" equal "$(grep -c 'somebody else' /tmp/service.log)" 0

fault "\"op\": \"set_features\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 2, \"count\": 1"
softnvme "{\"do\": \"firmware\", \"drive\": \"$evo\", \"firmware\": \"2B2QKXG7\", \"like\": \"$third\"}"
configure <<'END'
[profiles.balanced]
max_wake_latency = "10ms"
[[match]]
firmware = "2B2QKXG7"
[match.profiles.balanced]
max_wake_latency = "100ms"
END
reload
check "a write hangs" wait_for 15 hanging
echo 1 >"$(directory $evo)/reset_controller"
clear_faults
settles "reset in a write: the states and the [[match]] of the firmware that is there now" \
	"apst('$evo')['tolerance_us'] == 100000" "apst('$evo')['verified'] is True" "table('$evo') == predicted('$third', 100000)"

stop_service
check "clean exit" equal "$code $(tolerance $evo) $(tolerance $other)" "0 100000 100000"
configure <<'END'
[profiles.balanced]
max_wake_latency = "2ms"
[[match]]
subsystem_nqn = "*:samsung-990-evo-plus-4tb"
[match.profiles.balanced]
max_wake_latency = "100ms"
END
own() { [ "$(tolerance $evo) $(tolerance $other)" = "$1 2000" ]; }
set_tolerance $evo 50000			# a ceiling of this controller, and of no later one
start_service
check "a limit that one had before us" wait_for 10 "own 50000"
change_places
check "changed places while the service runs: each its own" wait_for 15 "own 100000"
settles "both verified" "apst('$evo')['verified'] is True" "apst('$other')['verified'] is True" \
	"table('$evo') == predicted('$third', 100000)"
check "the log says who has which name now" contains "$(name $evo): Samsung SSD 990 EVO Plus" /tmp/service.log
stop_service
check "the originals are those of the new ones" equal "$code $(tolerance $evo) $(tolerance $other)" "0 100000 100000"

set_tolerance $evo 50000
start_service
check "the limit again" wait_for 10 "own 50000"
kill -9 $service
wait $service 2>/dev/null
change_places
start_service
check "changed places while the service was dead: each its own" wait_for 15 "own 100000"
kill -9 $service
wait $service 2>/dev/null
change_places
restore
check "changed places before a restore: what is new is left alone" equal \
	"$code $(tolerance $evo) $(tolerance $other)" "0 100000 100000"
check "and nothing is remembered of those that left" test ! -e /run/nvmepolicyd/originals.json
