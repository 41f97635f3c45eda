# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The rig itself, without our programs: the APST table that this kernel builds and sends is, bit for bit, the one that the drive
# files expect, for twelve drives and five tolerances each. Get Features 0Ch returns what the drive holds. A fault, a hang and a
# table changed behind the kernel's back do what the other cases rely on.
#: without-programs
#: drives samsung-990-evo-plus-4tb skhynix-bc501a-128gb samsung-970-evo-plus-2tb corsair-mp500-120gb wd-blue-sn550-500gb toshiba-rc100
#: drives toshiba-thnsn5512gpu7 kingston-kc3000-4tb crucial-p5-500gb sabrent-rocket-q-8tb lexar-nm790-4tb micron-2200s-1tb
#: drives samsung-pm1733-7t6 kioxia-cd6-v-6t4
#: late npss-40

sleepers="samsung-990-evo-plus-4tb skhynix-bc501a-128gb samsung-970-evo-plus-2tb corsair-mp500-120gb wd-blue-sn550-500gb toshiba-rc100
	toshiba-thnsn5512gpu7 kingston-kc3000-4tb crucial-p5-500gb sabrent-rocket-q-8tb lexar-nm790-4tb micron-2200s-1tb"
evo=samsung-990-evo-plus-4tb

for tolerance in 0 5000 25000 100000 any; do
	expressions=
	for slug in $sleepers; do
		set_tolerance $slug $tolerance || check "write $tolerance for $slug" false
		expressions="$expressions
table('$slug') == predicted('$slug', '$tolerance')"
	done
	IFS='
'
	check "tables of 12 drives at $tolerance" expect $expressions
	unset IFS
done

check "no APST: no file" equal "$(ls "$(directory samsung-pm1733-7t6)/power" | grep -c tolerance)" 0
check "kernel quirk: no file" equal "$(ls "$(directory kioxia-cd6-v-6t4)/power" | grep -c tolerance)" 0

set_tolerance $evo 25000
nvme get-feature /dev/"$(name $evo)" -f 0x0c -H >/tmp/feature 2>&1
check "Get Features 0Ch shows the table" contains 'Idle Transition Power State.*3' /tmp/feature

nvme set-feature /dev/"$(name $evo)" -f 0x0c --value=0 --data-len=256 --data=/dev/zero >/tmp/feature 2>&1
case $VM_KERNEL in
6.1) check "6.1 lets a program set the table" expect "table('$evo') == (0, [])" ;;
*) check "this kernel lets no program set the table" expect "table('$evo') == predicted('$evo', 25000)" ;;
esac
set_tolerance $evo 24999
set_tolerance $evo 25000

reset_counts
set_tolerance $evo 25000
check "the same value again sends nothing" expect "programmed('$evo') == []"

fault '"op": "set_features", "fid": 12, "status": 16390'
set_tolerance $evo 100000
check "a refused table: the write succeeds, the drive keeps the old one" expect \
	"len(programmed('$evo')) == 1 and programmed('$evo')[0]['status'] == 16390" "table('$evo') == predicted('$evo', 25000)"
clear_faults

softnvme "{\"do\": \"set_apst_table\", \"drive\": \"$evo\", \"apste\": 0}"
check "a table changed behind the kernel's back" expect "table('$evo') == (0, [])"

connect_late npss-40
check "NPSS 40: the file is there" test -e "$(directory npss-40)/$TOLERANCE"
set_tolerance npss-40 5000
check "NPSS 40: nothing was ever sent" expect "programmed('npss-40') == []"
