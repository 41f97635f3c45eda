# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the bound is for: the first read after an idle period. At the kernel's 100000 the 990 EVO Plus sleeps in PS4 and needs about
# 33 ms to wake, after `nvmepolicyd --once` it sleeps in PS3 and needs less than 4. Asserted on the drive's own record of
# its wakes, which is exact; the times that the guest sees are printed side by side. Idle times are a fifth of the real ones.
#: drives samsung-990-evo-plus-4tb
#: scenario --idle-scale 0.2
#: time 120
evo=samsung-990-evo-plus-4tb trials=12
disk=/dev/$(basename "$(ls -d "$(directory $evo)"/nvme*n1)")
wait_for 10 "[ -b $disk ]"

reset_counts
python3 -S -E /rig/cold-read.py "$disk" $trials 0.8 "tolerance 100000" >/tmp/before
check "at 100000 every read wakes the drive from PS4" expect "[w['state'] for w in wakes('$evo')] == [4] * $trials" \
	"all(33000 < w['us'] < 34100 for w in wakes('$evo'))"

once
check "applied" exit_code 0
dd if="$disk" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null	# it still sleeps in PS4, where the new table found it
reset_counts
python3 -S -E /rig/cold-read.py "$disk" $trials 0.8 "after nvmepolicyd --once" >/tmp/after
check "at 25000 every read wakes the drive from PS3" expect "[w['state'] for w in wakes('$evo')] == [3] * $trials" \
	"all(3500 < w['us'] < 3700 for w in wakes('$evo'))"

cat /tmp/before /tmp/after
