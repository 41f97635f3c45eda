# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One `nvmepolicyd --once` with the default profile on AC (25 ms) over drives of different kinds. Each drive that supports APST gets
# 25000, its deepest state is the one of its drive file, and what the drive holds is the expected table bit for bit, verified.
# Drives without APST, QEMU's PCIe NVMe among them, are unsupported and no error. A second run changes nothing. A drive whose NPSS
# is invalid is never programmed by the kernel: its tolerance is left alone, it is not verified, and the exit code says so.
#: drives samsung-990-evo-plus-4tb skhynix-bc501a-128gb samsung-970-evo-plus-2tb corsair-mp500-120gb wd-blue-sn550-500gb
#: drives toshiba-rc100 toshiba-thnsn5512gpu7 kingston-kc3000-4tb linux-nvmet samsung-pm1733-7t6
#: late npss-40
#: qemu -drive id=disk,if=none,driver=null-co,size=16M,read-zeroes=on -device nvme,serial=QEMU0001,drive=disk,id=pcie

sleepers="samsung-990-evo-plus-4tb skhynix-bc501a-128gb samsung-970-evo-plus-2tb corsair-mp500-120gb wd-blue-sn550-500gb
	toshiba-rc100 toshiba-thnsn5512gpu7 kingston-kc3000-4tb"
wait_for 20 'grep -q pcie /sys/class/nvme/nvme*/transport'

once
check "everything applied" exit_code 0
for slug in $sleepers; do
	check "$slug: 25000, deepest state as expected, verified" expect "apst('$slug')['supported'] is True" \
		"apst('$slug')['tolerance_us'] == 25000" "apst('$slug')['bound_us'] == 25000" "apst('$slug')['ceiling_us'] == None" \
		"apst('$slug')['deepest_state'] == expected('$slug', 25000)['deepest_state']" "apst('$slug')['verified'] is True" \
		"table('$slug') == predicted('$slug', 25000)"
	check "$slug: the file" equal "$(tolerance $slug)" 25000
done
for slug in linux-nvmet samsung-pm1733-7t6; do
	check "$slug: unsupported and no error" expect "apst('$slug')['supported'] is False" "controller('$slug')['last_error'] == None"
done
check "QEMU's PCIe NVMe: unsupported and no error" expect "len(over_pcie()) == 1" \
	"over_pcie()[0]['apst']['supported'] is False" "over_pcie()[0]['last_error'] == None"

reset_counts
once
check "a second run: everything as it should be" exit_code 0
for slug in $sleepers; do
	check "a second run: nothing sent to $slug" expect "programmed('$slug') == []"
done

before=$(connect_late npss-40 && tolerance npss-40)
once
check "NPSS 40: the exit code says that something did not verify" exit_code 1
check "NPSS 40: the tolerance is left alone" equal "$(tolerance npss-40)" "$before"
check "NPSS 40: not verified, nothing sent" expect "apst('npss-40')['verified'] is not True" "programmed('npss-40') == []"
check "NPSS 40: the others are verified all the same" expect "apst('samsung-990-evo-plus-4tb')['verified'] is True"
