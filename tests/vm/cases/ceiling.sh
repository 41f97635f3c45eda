# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A limit that the administrator set before us is never exceeded. First boot: nvme_core.default_ps_max_latency_us=0, as machines
# carry it whose drive drops off the bus in deep sleep; APST stays off, and status says which ceiling binds. Second boot: 5500; and
# a drive whose file held a lower value when we first saw it has that one as its ceiling. Only a [[match]] with
# allow_deeper = true goes beyond, and only for the drives that match.
#: drives samsung-990-evo-plus-4tb samsung-970-evo-plus-2tb kingston-kc3000-4tb
#: boot nvme_core.default_ps_max_latency_us=0
#: boot nvme_core.default_ps_max_latency_us=5500
evo=samsung-990-evo-plus-4tb other=samsung-970-evo-plus-2tb by_hand=kingston-kc3000-4tb
[ "$BOOT" = 1 ] && ceiling=0 || ceiling=5500

check "the kernel starts with $ceiling" equal "$(tolerance $evo)" $ceiling
[ "$BOOT" = 1 ] || set_tolerance $by_hand 3000
reset_counts
once
check "applied" exit_code 0
for slug in $evo $other; do
	check "$slug stays at $ceiling" equal "$(tolerance $slug)" $ceiling
	check "$slug: status names the ceiling, nothing was sent" expect "apst('$slug')['ceiling_us'] == $ceiling" \
		"apst('$slug')['tolerance_us'] == $ceiling" "apst('$slug')['verified'] is True" "programmed('$slug') == []"
done
if [ "$BOOT" = 1 ]; then
	check "APST is off" expect "table('$evo') == (0, [])"
	nvmepolicyctl explain "$(name $evo)" >/tmp/explain.out 2>&1
	check "explain names the parameter" contains default_ps_max_latency_us /tmp/explain.out
else
	check "5500 admits PS3 only" expect "apst('$evo')['deepest_state'] == 3"
	check "a value set by hand before us stays" equal "$(tolerance $by_hand)" 3000
	check "and is a ceiling too" expect "apst('$by_hand')['ceiling_us'] == 3000"
fi

configure <<'END'
[[match]]
model = "Samsung SSD 990 EVO*"
[match.apst]
allow_deeper = true
END
once
check "allow_deeper: applied" exit_code 0
check "allow_deeper: the drive that matches goes to 25000" expect "apst('$evo')['tolerance_us'] == 25000" \
	"apst('$evo')['verified'] is True" "table('$evo') == predicted('$evo', 25000)"
check "allow_deeper: the other one stays" equal "$(tolerance $other)" $ceiling
