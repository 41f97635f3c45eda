# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Events that are lost. The service stands still while the kernel sends more uevents than its socket holds, which
# /proc/net/netlink tells; after that a drive leaves, another one takes its name, and a third leaves too. The same with the events
# that udevd passes on, and with a drive that has lost its table. It stands still a third time while two files are written more
# often than inotify's queue holds; after that somebody writes a third one. Each time it says that events were lost, looks at
# everything, and finds what it was not told.
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb
#: late kingston-kc3000-4tb
#: time 240
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb third=kingston-kc3000-4tb

cat >/tmp/storm.py <<'END'
"""storm.py uevents DIRECTORY | storm.py udev NAME | storm.py writes FILE FILE: until something is lost."""
import os
import socket
import struct
import sys
import time


def dropped():
    """Messages that sockets for uevents, which are the service's alone, had no room for."""
    with open("/proc/net/netlink", encoding="ascii") as table:
        return sum(int(line.split()[8]) for line in table if line.split()[1] == "15")


def subsystem_hash(text):
    """MurmurHash2, by which libudev's filter in the kernel knows a subsystem."""
    multiplier, value = 0x5bd1e995, len(text)
    for at in range(0, len(text) // 4 * 4, 4):
        part = struct.unpack_from("<I", text, at)[0] * multiplier & 0xffffffff
        value = (value * multiplier & 0xffffffff) ^ ((part ^ part >> 24) * multiplier & 0xffffffff)
    value = (value ^ value >> 13) * multiplier & 0xffffffff     # "nvme" has no rest
    return value ^ value >> 15


def udev_message(name):
    """As udevd sends it when its rules have run. Source: libudev, struct monitor_netlink_header."""
    properties = b"".join(text + b"\0" for text in (
        b"ACTION=change", b"DEVPATH=/devices/virtual/nvme-fabrics/ctl/" + name.encode(), b"SUBSYSTEM=nvme", b"SEQNUM=1",
        b"STORM=" + b"x" * 1500))
    return struct.pack("=8s4s3I4s3I", b"libudev", b"\xfe\xed\xca\xfe", 40, 40, len(properties),
                       struct.pack(">I", subsystem_hash(b"nvme")), 0, 0, 0) + properties


def storm(send):
    sent, before, began = 0, dropped(), time.monotonic()
    while dropped() == before and time.monotonic() - began < 60:
        for _ in range(500):
            send()
        sent += 500
    print(f"{sent} events in {time.monotonic() - began:.1f} s, {dropped() - before} lost")
    sys.exit(dropped() == before)


what, *places = sys.argv[1:]
if what == "uevents":
    event = b"change 00000000-1111-2222-3333-444444444444 STORM=" + b"x" * 1500
    descriptor = os.open(places[0] + "/uevent", os.O_WRONLY)
    storm(lambda: os.write(descriptor, event))
if what == "udev":
    message = udev_message(places[0])
    sender = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
    storm(lambda: sender.sendto(message, (0, 2)))
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

kill -STOP $service
check "more of udev's events than the socket holds" storm udev "$(name $evo)"
cat /tmp/check.out
softnvme "{\"do\": \"set_apst_table\", \"drive\": \"$evo\", \"apste\": 0}"
kill -CONT $service
check "it says that udev's events were lost" wait_for 20 "grep -q \"udev's events came faster than they could be read\" /tmp/service.log"
check "and looks at everything: a lost table is back" wait_for 20 "expect \"table('$evo') == predicted('$evo', 25000)\""

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
