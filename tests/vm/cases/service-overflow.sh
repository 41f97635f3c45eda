# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Events that are lost. The service stands still while the kernel sends more uevents than its socket holds, which
# /proc/net/netlink tells; after that a drive leaves, another one takes its name, and a third leaves too. It stands still again
# while two files are written more often than inotify's queue holds; after that somebody writes a third one. Each time it says
# that events were lost, looks at everything, and finds what it was not told.
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb
#: late kingston-kc3000-4tb
#: time 240
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb third=kingston-kc3000-4tb

cat >/tmp/storm.py <<'END'
"""storm.py uevents DIRECTORY | storm.py writes FILE FILE: until something is lost."""
import os
import sys
import time


def dropped():
    """Messages that sockets for uevents, which are the service's alone, had no room for."""
    with open("/proc/net/netlink", encoding="ascii") as table:
        return sum(int(line.split()[8]) for line in table if line.split()[1] == "15")


what, *places = sys.argv[1:]
if what == "uevents":
    event = b"change 00000000-1111-2222-3333-444444444444 STORM=" + b"x" * 1500
    descriptor = os.open(places[0] + "/uevent", os.O_WRONLY)
    sent, began = 0, time.monotonic()
    while not dropped() and time.monotonic() - began < 60:
        for _ in range(500):
            os.write(descriptor, event)
        sent += 500
    print(f"{sent} uevents in {time.monotonic() - began:.1f} s, {dropped()} lost")
    sys.exit(not dropped())
with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as limit:
    rounds = int(limit.read()) // 2 + 100
descriptors = [os.open(place, os.O_WRONLY) for place in places]
for _ in range(rounds):
    for descriptor in descriptors:          # two in turn, or inotify makes one event of them
        os.pwrite(descriptor, b"25000", 0)
print(f"{2 * rounds} writes")
END
storm() { python3 -S -E /tmp/storm.py "$@"; }

start_service
check "both are served" wait_for 10 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '25000 25000' ]"
names="$(name $evo) $(name $other)"
sleep 2
kill -STOP $service
check "more uevents than the socket holds" storm uevents "$(directory $evo)"
cat /tmp/check.out
disconnect $evo
check "it has left" wait_for 10 "! directory $evo"
connect_late $third
check "another one has its name" equal "$(name $third) $(name $other)" "$names"
disconnect $other
check "the other one has left too" wait_for 10 "! directory $other"
kill -CONT $service
check "it says that uevents were lost" wait_for 20 "grep -q 'uevents came faster than they could be read' /tmp/service.log"
check "the one that has come is served" wait_for 20 "[ \"\$(tolerance $third)\" = 25000 ]"
check "under the name that it has now" contains "${names% *}: KINGSTON" /tmp/service.log
check "the one that has left is known to have left" wait_for 20 \
	"grep -q '${names#* }: left (Samsung SSD 970 EVO Plus' /tmp/service.log"
status
check "verified" expect "apst('$third')['verified'] is True" "table('$third') == predicted('$third', 25000)"
check "once is enough" equal "$(grep -c 'uevents came faster' /tmp/service.log)" 1
connect_late $evo
connect_late $other
check "and it hears again" wait_for 20 "[ \"\$(tolerance $evo) \$(tolerance $other)\" = '25000 25000' ]"

sleep 6						# the window in which writes are counted
kill -STOP $service
check "more writes than inotify's queue holds" storm writes "$(directory $evo)/$TOLERANCE" "$(directory $other)/$TOLERANCE"
cat /tmp/check.out
set_tolerance $third 60000
kill -CONT $service
check "it says that writes were lost" wait_for 20 \
	"grep -q \"writes to the drives' files came faster than they could be read\" /tmp/service.log"
check "the foreign value is noticed" wait_for 20 \
	"grep -q '$(name $third): somebody else set the latency tolerance to 60000, ours was 25000' /tmp/service.log"
check "the two are as they were" equal "$(tolerance $evo) $(tolerance $other)" "25000 25000"
stop_service
check "clean exit" equal "$code $(tolerance $evo) $(tolerance $other)" "0 100000 100000"
