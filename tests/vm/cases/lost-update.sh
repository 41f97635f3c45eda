# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The file shows a value that the drive has never got. First the kernel's own race: a write that lands after the driver has
# programmed the table of a reconnect but before the controller is live is stored and not sent. Then a drive that loses its table
# by itself. In observe mode both are reported and nothing is sent. Else one run repairs it: writing the same number again
# does nothing in the kernel, so it goes through a neighbour value that admits no more, which makes two Set Features.
#: drives samsung-990-evo-plus-4tb
evo=samsung-990-evo-plus-4tb

observe() {
	configure <<'END'
[apst]
mode = "observe"
END
}
manage() { rm -f /etc/nvmepolicyd/nvmepolicyd.toml; }
repaired() {	# TEXT
	reset_counts
	observe
	once
	check "$1, observe: reported" expect "apst('$evo')['verified'] is False"
	check "$1, observe: nothing sent" expect "programmed('$evo') == []"
	manage
	once
	check "$1: exit code 0" exit_code 0
	check "$1: verified" expect "apst('$evo')['verified'] is True" "table('$evo') == predicted('$evo', 25000)"
	check "$1: two Set Features, neither admits more" expect "len(programmed('$evo')) == 2" \
		"all(normal(p['apste'], p['entries']) == predicted('$evo', 25000) for p in programmed('$evo'))"
	check "$1: the file ends at 25000" equal "$(tolerance $evo)" 25000
}

# Set Features 07h, number of queues, is what the driver sends between the table and `live`.
fault "\"op\": \"set_features\", \"fid\": 7, \"hang_s\": 4, \"count\": 1"
softnvme '{"do": "drop"}'
check "the reconnect hangs behind the table" wait_for 20 hanging
check "the controller is connecting" equal "$(state $evo)" connecting
set_tolerance $evo 25000
check "live again" wait_live $evo
check "the race: new value in the file" equal "$(tolerance $evo)" 25000
check "the race: old table in the drive" expect "table('$evo') == predicted('$evo', 100000)"
repaired "lost update"

softnvme "{\"do\": \"set_apst_table\", \"drive\": \"$evo\", \"apste\": 0}"
check "the drive has lost its table" expect "table('$evo') == (0, [])"
repaired "lost table"
