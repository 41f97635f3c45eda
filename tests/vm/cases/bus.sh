# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The service on a real system bus, under systemd, in its sandbox. A profile that is set over D-Bus reaches the drive's APST table,
# and so does what a process holds, until it is killed: then the table is as before. A hold on one drive sends no command
# to the other. Nobody may read everything and change nothing. Controllers come and go as objects. A profile that
# power-profiles-daemon has is followed to the drive, one that is unknown changes nothing. When the bus dies, systemd starts the
# service again, on the next one.
#: systemd
#: drives samsung-990-evo-plus-4tb toshiba-rc100
#: late samsung-970-evo-plus-2tb
#: time 240
evo=samsung-990-evo-plus-4tb rc=toshiba-rc100 late=samsung-970-evo-plus-2tb
root=/org/nvmepolicy1 manager=org.nvmepolicy1.Manager controller=org.nvmepolicy1.Controller
ppd=net.hadess.PowerProfiles

property() { systemctl show --property "$1" --value "${2:-nvmepolicyd}"; }
get() { busctl --system get-property org.nvmepolicy1 "$root" "$manager" "$1"; }
path() { echo "$root/controller/$(name "$1")"; }
of() { busctl --system get-property org.nvmepolicy1 "$(path "$1")" "$controller" "$2"; }	# SLUG PROPERTY
call() { busctl --system call org.nvmepolicy1 "$root" "$manager" "$@"; }
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
refused() {		# TEXT COMMAND…: as nobody, and polkit says no
	_what=$1
	shift
	as_nobody busctl --system call org.nvmepolicy1 "$root" "$manager" "$@" >/tmp/refused 2>&1 && { echo "$_what was allowed"; return 1; }
	grep -q 'polkit says no' /tmp/refused || { cat /tmp/refused; return 1; }
}
hold() {		# ARGUMENTS of hold.py: in $holder
	rm -f /tmp/cookie
	python3 /rig/hold.py "$@" >/tmp/cookie 2>/tmp/hold.err &
	holder=$!
	wait_for 20 "[ -s /tmp/cookie ] || ! kill -0 $holder 2>/dev/null"
	[ -s /tmp/cookie ] || { cat /tmp/hold.err; return 1; }
}
let_go() { killed_us=$(date +%s%6N); kill -9 "$holder"; wait "$holder" 2>/dev/null; }
back_ms() {		# SLUG: how long after that the service had told the drive, and read its table again
	_told=$(journalctl -u nvmepolicyd -o short-unix | grep "$(name "$1"): latency tolerance" | tail -n 1 | cut -d ' ' -f 1 | tr -d .)
	echo $(((_told - killed_us) / 1000))
}
tolerances() { echo "$(tolerance $evo) $(tolerance $rc)"; }
become() { wait_for "${3:-10}" "[ \"\$(tolerances)\" = '$1 $2' ]"; }
off() { expect "table('$1')[0] == 0"; }
as_predicted() { expect "table('$1') == predicted('$1', $2)"; }
pss_of() { awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup"; }


timed_start=$(now_ms)
systemctl start nvmepolicyd
echo "systemctl start: $(($(now_ms) - timed_start)) ms"
check "balanced at first" become 25000 25000
check "the profile, asked with busctl" equal "$(get ActiveProfile)" 's "balanced"'
check "not simulated" equal "$(get Simulated)" 'b false'
check "the object of a drive" equal "$(of $evo LatencyToleranceMicroseconds) $(of $evo State)" 't 25000 s "live"'
check "verified" wait_for 10 "[ \"\$(of $evo ApstVerified) \$(of $rc ApstVerified)\" = 'b true b true' ]"
check "the name is nobody's to take" equal "$(as_nobody busctl --system call org.freedesktop.DBus /org/freedesktop/DBus \
	org.freedesktop.DBus RequestName su org.nvmepolicy1 0 2>&1 | grep -c 'Access denied')" 1

# Profiles, and the drive's own table.
check "set performance" call SetProfile s performance
check "APST is off in the drive" off $evo
check "and in the other" off $rc
check "the objects say so" equal "$(get BaseProfile) $(of $evo ApstEnabled)" 's "performance" b false'
check "kept" contains performance /var/lib/nvmepolicyd/profile.json
check "set balanced" call SetProfile s balanced
check "as predicted again" as_predicted $evo 25000
check "and the other" as_predicted $rc 25000

# Holds.
check "a process holds performance" hold profile performance
check "APST is off" off $evo
check "base and active profile" equal "$(get ActiveProfile) $(get BaseProfile)" 's "performance" s "balanced"'
let_go
check "killed: both are as before" become 25000 25000
echo "kill -9 of the holder until the drives have their tables: $(back_ms $evo) and $(back_ms $rc) ms"
check "killed: soon; within a second where nothing is emulated" test "$(back_ms $evo)" -lt 4000
check "killed: the table is back" wait_for 5 "as_predicted $evo 25000 >/dev/null"
check "killed: no hold is left" wait_for 5 "[ \"\$(get ActiveHolds)\" = 'aa{sv} 0' ]"
check "the second drive is settled too" wait_for 5 "as_predicted $rc 25000 >/dev/null"
reset_counts
check "a process holds 0 on one drive" hold latency "$(path $evo)" 0
check "that drive is told" off $evo
check "the other got no Set Features" expect "count('$rc', 'set_features_0ch') == 0" "table('$rc') == predicted('$rc', 25000)"
let_go
check "killed: back" become 25000 25000
check "still none for the other" expect "count('$rc', 'set_features_0ch') == 0"

# The command line.
check "nvmepolicyctl sets performance" nvmepolicyctl profile set performance
check "nvmepolicyctl: APST is off" off $evo
check "nvmepolicyctl: and says so" equal "$(nvmepolicyctl profile get)" performance
check "nvmepolicyctl sets balanced" nvmepolicyctl profile set balanced
check "nvmepolicyctl: back" as_predicted $evo 25000
block=$(basename "$(ls -d "$(directory $evo)"/nvme*n* | head -n 1)" | sed 's/c[0-9]*n/n/')	# the node; a path disk has none
check "run --for: the drive behind a disk, and no other" equal \
	"$(nvmepolicyctl run --max-latency 2ms --for "/dev/$block" -- cat "$(directory $evo)/$TOLERANCE" "$(directory $rc)/$TOLERANCE" | xargs)" \
	"2000 25000"
check "run --for: over" become 25000 25000
nvmepolicyctl run --max-latency 2ms --for / -- true >/tmp/run.out 2>&1
check "run --for: a file system that is on no NVMe drive" equal "$?" 125
nvmepolicyctl run --profile performance -- sh -c "cat $(directory $evo)/$TOLERANCE >/tmp/held; kill -9 \$PPID; sleep 30" 2>/dev/null &
check "run: the command begins when the drives were told" wait_for 20 "[ \"\$(cat /tmp/held 2>/dev/null)\" = 0 ]"
check "run killed: both are as before" become 25000 25000 20

# Who may.
check "nobody reads" equal "$(as_nobody busctl --system get-property org.nvmepolicy1 $root $manager ActiveProfile)" 's "balanced"'
check "nobody sets no profile" refused SetProfile SetProfile s performance
check "nobody holds nothing" refused HoldLatency HoldLatency otss "$root" 0 x x
check "nobody reloads nothing" refused Reload Reload
check "it was polkit who was asked" equal "$(property ActiveState polkit)" active
check "nothing changed" equal "$(tolerances) $(get BaseProfile)" '25000 25000 s "balanced"'

# Objects come and go.
busctl --system monitor org.nvmepolicy1 >/tmp/monitor.out 2>&1 &
monitor=$!
sleep 1
connect_late $late
check "plugged in: served" wait_for 10 "[ \"\$(tolerance $late)\" = 25000 ]"
late_path=$(path $late)
check "plugged in: InterfacesAdded" wait_for 5 "grep -q InterfacesAdded /tmp/monitor.out && grep -q 'OBJECT_PATH \"$late_path\"' /tmp/monitor.out"
check "plugged in: an object" equal "$(of $late State)" 's "live"'
disconnect $late
check "unplugged: InterfacesRemoved" wait_for 10 "grep -q InterfacesRemoved /tmp/monitor.out"
check "unplugged: no object" equal "$(busctl --system get-property org.nvmepolicy1 "$late_path" $controller State 2>&1 | grep -c 'Unknown object')" 1
kill $monitor

# In the footsteps of power-profiles-daemon.
configure <<'END'
[daemon]
follow = "power-profiles-daemon"
END
check "reload over D-Bus" call Reload
systemctl start power-profiles-daemon
check "its profile is followed" busctl --system set-property $ppd /net/hadess/PowerProfiles $ppd ActiveProfile s power-saver
check "to the drive" wait_for 10 "as_predicted $evo \"'any'\" >/dev/null"
check "and is the base profile" equal "$(get BaseProfile)" 's "power-saver"'
check "SetProfile is refused" equal "$(call SetProfile s performance 2>&1 | grep -c -i power-profiles-daemon)" 1
check "and back" busctl --system set-property $ppd /net/hadess/PowerProfiles $ppd ActiveProfile s balanced
check "on the drive" wait_for 10 "as_predicted $evo 25000 >/dev/null"
echo "PSS: nvmepolicyd $(pss_of "$(property MainPID)") kB with two controllers, \
power-profiles-daemon $(pss_of "$(property MainPID power-profiles-daemon)") kB"
systemctl stop power-profiles-daemon
mkfifo /tmp/say
python3 /rig/profiles_mock.py unix:path=/run/dbus/system_bus_socket performance $ppd </tmp/say >/tmp/mock.out 2>&1 &
exec 9>/tmp/say
check "somebody else has the name: followed" become 0 0
reset_counts
echo custom >&9
sleep 2
check "an unknown profile changes nothing" equal "$(tolerances) $(get BaseProfile)" '0 0 s "performance"'
check "the drive got no command for it" expect "count('$evo', 'set_features_0ch') == 0"
exec 9>&-
check "nobody to follow: the configured profile" become 25000 25000
rm /etc/nvmepolicyd/nvmepolicyd.toml
call Reload

# The bus dies.
check "performance, to be kept" call SetProfile s performance
before=$(property MainPID)
bus_died=$(now_ms)
kill -9 "$(property MainPID dbus)"
check "the bus dies: systemd starts another service" wait_for 30 \
	"_pid=\$(property MainPID); [ \"\$_pid\" != 0 ] && [ \"\$_pid\" != $before ] && [ \"\$(property ActiveState)\" = active ]"
check "the bus dies: it has its name again" wait_for 20 "[ \"\$(get BaseProfile 2>/dev/null)\" = 's \"performance\"' ]"
echo "killed dbus-daemon until the service answers on the next one: $(($(now_ms) - bus_died)) ms"
check "the bus dies: the values" become 0 0
journalctl -u nvmepolicyd -o cat >/tmp/journal.txt
check "the bus dies: it said so" contains "D-Bus" /tmp/journal.txt
check "the bus dies: no abort" equal "$(grep -c -e 'status=6/ABRT' -e 'terminate called' /tmp/journal.txt)" 0
check "the bus dies: by its own exit code" contains "code=exited, status=3/" /tmp/journal.txt
systemctl stop nvmepolicyd
check "stopped: what there was at first" equal "$(tolerances)" "100000 100000"
