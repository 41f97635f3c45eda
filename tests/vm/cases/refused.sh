# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A drive that rejects Set Features 0Ch: the kernel drops the status, so the file shows the new value while the drive keeps the old
# table. That must not count as done: not verified, exit code 1, and at most three attempts (the write, and one repair through a
# neighbour value), in the next run at most the repair. A drive that rejects Get Features 0Ch proves nothing: not verified.
# The other drive is served all the same. Once the drive accepts again, one run puts it right.
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb

reset_counts
fault "\"op\": \"set_features\", \"fid\": 12, \"drive\": \"$evo\", \"status\": 16390"
once
check "refused: exit code 1" exit_code 1
check "refused: the drive keeps the old table" expect "table('$evo') == predicted('$evo', 100000)"
check "refused: not verified, and somebody says why" expect "apst('$evo')['verified'] is False" "apst('$evo')['reason']"
check "refused: tried, but not in a loop" expect "1 <= len(programmed('$evo')) <= 3"
check "the other drive is verified" expect "apst('$other')['verified'] is True" "table('$other') == predicted('$other', 25000)"

reset_counts
once
check "refused again: exit code 1" exit_code 1
check "refused again: at most one repair" expect "len(programmed('$evo')) <= 3"

clear_faults
once
check "accepted: exit code 0" exit_code 0
check "accepted: verified" expect "apst('$evo')['verified'] is True" "table('$evo') == predicted('$evo', 25000)"

reset_counts
fault "\"op\": \"get_features\", \"fid\": 12, \"drive\": \"$evo\", \"status\": 16386"
once
check "unreadable: exit code 1" exit_code 1
check "unreadable: not verified" expect "apst('$evo')['verified'] is not True"
check "unreadable: the tolerance file is not used on a drive that does not answer" expect "programmed('$evo') == []"
