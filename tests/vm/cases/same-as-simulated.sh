# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The simulated kernel (src/simulation) is like this one: guest/kernel-script is played on both, and what comes of it is the same,
# line by line: which writes are accepted, what is read, every table that a drive gets, every uevent of a controller, and which of
# it comes before which moment of an initialisation. Where they differ, the simulation is wrong.
#: without-programs
#: tools kernel-transcript
#: late samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb crucial-p5-500gb samsung-pm1733-7t6 npss-40 kioxia-cd6-v-6t4

check "played on this kernel" python3 -S -E /rig/kernel_script.py /rig/kernel-script
mv /tmp/check.out /share/real.txt
check "played on the simulated one" /rig/kernel-transcript "$VM_KERNEL" /rig/drives /rig/kernel-script
mv /tmp/check.out /share/simulated.txt
echo "$(grep -c '^>' /share/real.txt) actions, $(grep -c '^  ' /share/real.txt) observations"
check "the same" diff -U 4 /share/simulated.txt /share/real.txt
