# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `--restore` puts back what each file held before us, also `auto`, also after kill -9 in the middle of the write; a value that
# somebody else has set since is left alone. A second instance is refused while one is at work. A read-only /sys is refused. A dry
# run says what it would do and writes nothing.
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb kingston-kc3000-4tb
evo=samsung-990-evo-plus-4tb auto=samsung-970-evo-plus-2tb foreign=kingston-kc3000-4tb

set_tolerance $auto auto
reset_counts
nvmepolicyd --once --dry-run >/tmp/once.out 2>&1
check "dry run: says what it would write" contains 25000 /tmp/once.out
check "dry run: writes nothing" expect "programmed('$evo') == []" "programmed('$auto') == []"
check "dry run: the files" equal "$(tolerance $evo) $(tolerance $auto)" "100000 auto"

unshare -m sh -c 'mount -o remount,bind,ro /sys && nvmepolicyd --once' >/tmp/once.out 2>&1
code=$?
check "read-only /sys: refused" equal "$((code != 0))" 1
check "read-only /sys: says so" contains read-only /tmp/once.out
check "read-only /sys: nothing sent" expect "programmed('$evo') == []"

once
check "applied" exit_code 0
check "all at 25000" equal "$(tolerance $evo) $(tolerance $auto) $(tolerance $foreign)" "25000 25000 25000"
start_service --dry-run
stop_service
check "a service in a dry run: ends well" equal "$code" 0
check "a service in a dry run: puts nothing back when it stops" equal "$(tolerance $evo) $(tolerance $auto)" "25000 25000"
set_tolerance $foreign 50000
restore
check "restore: exit code 0" equal "$code" 0
check "restore: the first value is back" equal "$(tolerance $evo)" 100000
check "restore: auto is back" equal "$(tolerance $auto)" auto
check "restore: somebody else's value stays" equal "$(tolerance $foreign)" 50000
check "restore: the drive has the table again" expect "table('$evo') == predicted('$evo', 100000)"

reset_counts
fault "\"op\": \"set_features\", \"fid\": 12, \"drive\": \"$evo\", \"hang_s\": 6, \"count\": 1"
nvmepolicyd --once >/tmp/first.out 2>&1 &
daemon=$!
check "the first instance hangs in the write" wait_for 15 hanging
timeout 5 nvmepolicyd --once >/tmp/once.out 2>&1
code=$?
check "second instance: refused at once" equal "$((code != 0 && code != 124 && code != 143))" 1
check "second instance: says why" contains 'another\|already\|running' /tmp/once.out
kill -9 $daemon
wait $daemon 2>/dev/null
wait_for 15 "expect \"table('$evo') == predicted('$evo', 25000)\" >/dev/null 2>&1"
check "killed in the write, which went through all the same" equal "$(tolerance $evo)" 25000
clear_faults
restore
check "restore after kill -9: exit code 0" equal "$code" 0
check "restore after kill -9: the first value is back" equal "$(tolerance $evo)" 100000
