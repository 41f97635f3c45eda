# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What case scripts are written with. A drive is named by the slug of its drive file; the host's address is 10.0.2.2.
NQN=nqn.2026-11.org.nvmepolicyd.test
TOLERANCE=power/pm_qos_latency_tolerance_us
echo 0 >/tmp/failures
touch /tmp/checked

# --- checks --------------------------------------------------------------------------------------------------------------

check() {		# TEXT COMMAND…: one checked statement; output is shown only if the command fails
	_text=$1
	shift
	echo x >>/tmp/checked
	if "$@" >/tmp/check.out 2>&1; then
		echo "ok: $_text"
	else
		echo "NOT OK: $_text ($*)"
		sed 's/^/    /' /tmp/check.out
		echo $(($(cat /tmp/failures) + 1)) >/tmp/failures
		return 1
	fi
}
expect() { python3 -S -E /rig/expect.py "$@"; }	# EXPRESSION: see expect.py
equal() { [ "$1" = "$2" ] || { echo "found '$1', expected '$2'"; return 1; }; }
contains() { grep -q -i -e "$1" "$2" || { echo "no '$1' in:"; cat "$2"; return 1; }; }
conclude() {		# a case without a check has proven nothing
	[ -s /tmp/checked ] || { echo "no check was made"; return 1; }
	echo "$(wc -l </tmp/checked) checks, $(cat /tmp/failures) failed"
	[ "$(cat /tmp/failures)" = 0 ] && return
	[ ! -e /tmp/service.log ] || { echo "---- end of the service's log"; tail -n 40 /tmp/service.log; }
	return 1
}
wait_for() {		# SECONDS CONDITION
	_left=$(($1 * 10))
	while [ $_left -gt 0 ]; do
		eval "$2" && return 0
		sleep 0.1
		_left=$((_left - 1))
	done
	echo "waited $1 s in vain for: $2"
	return 1
}

# --- drives --------------------------------------------------------------------------------------------------------------

connect() {		# NQN PORT
	echo "transport=tcp,traddr=10.0.2.2,trsvcid=$2,nqn=$1,hostnqn=$(cat /etc/nvme/hostnqn),hostid=$(cat /etc/nvme/hostid),\
nr_io_queues=1,keep_alive_tmo=30,ctrl_loss_tmo=600,reconnect_delay=1" >/tmp/connect && cat /tmp/connect >/dev/nvme-fabrics
}
connect_all() {		# every drive that is not declared late
	for _path in $SOFTNVME_DRIVES; do
		connect "${_path%,*}" "${_path#*,}" || { echo "cannot connect $_path"; return 1; }
	done
	for _path in $SOFTNVME_DRIVES; do wait_live "$(slug_of "$_path")" || return 1; done
}
connect_late() {	# SLUG
	for _path in $SOFTNVME_DRIVES $SOFTNVME_LATE; do
		[ "$(slug_of "$_path")" = "$1" ] && connect "${_path%,*}" "${_path#*,}" && wait_live "$1" && return
	done
	return 1
}
slug_of() { _nqn=${1%,*}; echo "${_nqn##*:}"; }
directory() {		# SLUG: its directory under /sys/class/nvme
	for _directory in /sys/class/nvme/nvme*; do
		[ "$(cat "$_directory/subsysnqn" 2>/dev/null)" = "$NQN:$1" ] && echo "$_directory" && return
	done
	return 1
}
name() { _found=$(directory "$1") && basename "$_found"; }
state() { cat "$(directory "$1")/state" 2>/dev/null; }
wait_live() { wait_for 20 "[ \"\$(state $1)\" = live ]"; }
disconnect() { echo 1 >"$(directory "$1")/delete_controller"; }
tolerance() { cat "$(directory "$1")/$TOLERANCE"; }
set_tolerance() { echo "$2" >"$(directory "$1")/$TOLERANCE"; }

# --- the host ------------------------------------------------------------------------------------------------------------

softnvme() {		# state, log, log?n=5, or a JSON command
	case "$1" in
	"{"*) wget -q -O - --post-data "$1" "http://10.0.2.2:$SOFTNVME_HTTP/" | tee /tmp/softnvme.out | grep -q '"ok": true' ||
		{ echo "softnvme refused $1:"; cat /tmp/softnvme.out; return 1; } ;;
	*) wget -q -O - "http://10.0.2.2:$SOFTNVME_HTTP/$1" ;;
	esac
}
fault() { softnvme "{\"do\": \"fault\", \"rule\": {$1}}"; }	# '"op": …'
clear_faults() { softnvme '{"do": "clear_faults"}'; }
reset_counts() { softnvme '{"do": "reset_counts"}'; }
hanging() { softnvme 'log?n=20' | grep -q '"ev": "hang"'; }	# a command hangs now, or did lately
hmp() {			# a command of QEMU's monitor
	_number=$(($(cat /tmp/hmp 2>/dev/null || echo 0) + 1))
	echo $_number >/tmp/hmp
	echo "@@vm hmp $_number $*@@" >/dev/ttyS1
	wait_for 10 "[ -e /share/hmp.$_number ]" && cat "/share/hmp.$_number"
}

# --- our programs --------------------------------------------------------------------------------------------------------

once() {		# OPTIONS…: nvmepolicyd --once; output in /tmp/once.out, exit code in $code; then the status, for `expect`
	nvmepolicyd --once "$@" >/tmp/once.out 2>&1
	code=$?
	status
}
restore() { nvmepolicyd --restore "$@" >/tmp/restore.out 2>&1; code=$?; }
status() { nvmepolicyctl status --json >/tmp/status.json 2>/tmp/status.err; }
configure() {		# the configuration file from standard input
	mkdir -p /etc/nvmepolicyd
	cat >/etc/nvmepolicyd/nvmepolicyd.toml
}
exit_code() { equal "$code" "$1" || { cat /tmp/once.out; return 1; }; }

# --- the running service -------------------------------------------------------------------------------------------------

start_service() {	# OPTIONS…: in the background; log in /tmp/service.log, pid in $service
	nvmepolicyd --bus none "$@" >/tmp/service.log 2>&1 &
	service=$!
	wait_for 10 "grep -q started /tmp/service.log"
}
reload() { kill -HUP $service; }
stop_service() {	# its exit code in $code
	kill -TERM $service
	wait $service
	code=$?
}
now_ms() { awk '{ printf "%d\n", $1 * 1000 }' /proc/uptime; }	# hundredths of a second are what it has
tasks() {		# voluntary context switches of all its threads
	cat /proc/$service/task/*/status | awk '/^voluntary_ctxt_switches/ { n += $2 } END { print n }'
}
pss() { awk '/^Pss:/ { print $2 }' /proc/$service/smaps_rollup; }
