# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Every kind of fault at every step of a job: Identify, the Get Features before the write, the write (which is a Set Features),
# and the Get Features that verifies. The command is refused, hangs, or takes the connection with it; the controller is
# disconnected, or the service killed, while it hangs. Once the fault is over, the drive ends with the policy's value, verified,
# without anybody's help, but for one: a drive that refuses the table is not written to again and again, and waits for the next
# wish. Killed at any step, --restore finds the original. What was said of each cell is printed as a table.
#: drives samsung-970-evo-plus-2tb samsung-980-pro crucial-p1-1tb intel-660p-1tb
#: time 300
steps="identify look write verify"
bound=25000

drive_of() {		# STEP: each has a drive of its own, so that they can go wrong together
	case $1 in
	identify) echo samsung-970-evo-plus-2tb ;;
	look) echo samsung-980-pro ;;
	write) echo crucial-p1-1tb ;;
	verify) echo intel-660p-1tb ;;
	esac
}
fault_at() {		# STEP WHAT
	case $1 in
	identify) _command='"op": "identify", "cns": 1' ;;
	look) _command='"op": "get_features", "fid": 12' ;;
	write) _command='"op": "set_features", "fid": 12' ;;
	verify) _command='"op": "get_features", "fid": 12, "skip": 1' ;;
	esac
	fault "$_command, \"drive\": \"$(drive_of "$1")\", $2"
}
new_wish() {		# a value that no drive has yet
	if [ $bound = 25000 ]; then bound=5000; else bound=25000; fi
	printf '[profiles.balanced]\nmax_wake_latency = "%sus"\n' $bound | configure
	lines=$(wc -l </tmp/service.log)
	reload
}
all_hit() { expect "ask('state')['faults']" "all(rule['hits'] for rule in ask('state')['faults'])" >/dev/null 2>&1; }
said_of() { tail -n "+$((lines + 1))" /tmp/service.log | grep "$(name "$1"):"; }	# SLUG: since the last wish
is_right() {		# SLUG: value and table, and the service has seen it
	said_of "$1" | tail -n 1 | grep -q 'the drive holds the predicted table' && [ "$(tolerance "$1")" = $bound ] &&
		expect "table('$1') == predicted('$1', $bound)" >/dev/null 2>&1
}
anew() {		# a new log, so that no line of this round is one too many
	stop_service
	start_service
	lines=0
	for _step in $steps; do check "$_step: served" wait_for 15 "is_right $(drive_of $_step)"; done
}
cell() {		# KIND STEP [TEXT]: waits for the end state, and writes a line of the table; one after the other
	_drive=$(drive_of "$2")
	check "$1 at $2: ends with the policy's value and its table" wait_for 20 "is_right $_drive"
	_took=$(($(now_ms) - over))
	printf '%-10s %-8s %6s ms  %s\n' "$1" "$2" $_took \
		"${3:-$(said_of "$_drive" | sed -e 's/^nvmepolicyd: nvme[0-9]*: //' -e 's/ (profile [^;]*;/,/' | paste -s -d '|')}" \
		>>/tmp/table
}
all_verified() {	# KIND
	status
	for _step in $steps; do
		check "$1 at $_step: verified" expect "apst('$(drive_of $_step)')['verified'] is True"
	done
}

together() {		# KIND WHAT: at all steps at once
	anew
	reset_counts
	for step in $steps; do fault_at $step "$2"; done
	new_wish
	check "$1: all have met their fault" wait_for 40 all_hit
	sleep 1					# for the first words about it
	clear_faults
	over=$(now_ms)
	for step in $steps; do
		[ "$1 $step" = "refused write" ] && drive_that_refuses "$(drive_of write)"
		cell "$1" $step
	done
	all_verified "$1"
}
drive_that_refuses() {	# SLUG
	sleep 3
	check "refused at write: it says so" contains "$(name "$1"): .*repair.*it refused the table" /tmp/service.log
	check "refused at write: it was tried, repaired once, and no more" expect \
		"len(programmed('$1')) == 3" "table('$1') != predicted('$1', $bound)"
	reload
	over=$(now_ms)
}

configure </dev/null
start_service
together refused '"status": 6'			# internal error; the kernel may try again
together hangs '"hang_s": 6, "count": 1'
together drops '"drop": true, "count": 1'

anew
for step in $steps; do
	drive=$(drive_of $step)
	fault_at $step '"hang_s": 3, "count": 1'
	new_wish
	check "disconnect at $step: the drive hangs" wait_for 15 all_hit
	disconnect "$drive"
	clear_faults
	wait_for 10 "! directory $drive"
	connect_late "$drive"
	over=$(now_ms)
	cell disconnect $step
done
all_verified disconnect

for step in $steps; do
	drive=$(drive_of $step)
	fault_at $step '"hang_s": 3, "count": 1'
	new_wish
	check "kill at $step: the drive hangs" wait_for 15 all_hit
	kill -9 $service
	wait $service 2>/dev/null
	clear_faults
	sleep 3
	restore
	check "kill at $step: --restore finds the originals" equal \
		"$code $(for s in $steps; do tolerance "$(drive_of $s)"; done | paste -s -d ' ')" \
		"0 100000 100000 100000 100000"
	restored=$(tolerance "$drive")
	over=$(now_ms)
	start_service
	lines=0
	cell kill $step "restored $restored, started again"
done
all_verified kill
check "no process is left behind" wait_for 10 '! pidof nvmepolicy-device'

echo "kind       step     seen right  what was said"
cat /tmp/table
