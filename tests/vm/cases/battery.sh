# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The bound follows the power source: 25 ms on AC, 100 ms on battery, which lets the 990 EVO Plus sleep in PS4, and back. A machine
# without any power supply is on AC, and so is one whose only battery belongs to a mouse. The supplies are the kernel's test_power;
# the mouse is a HID device with a battery (scope Device), made through uhid.
#: drives samsung-990-evo-plus-4tb
#: modules test_power
evo=samsung-990-evo-plus-4tb
parameters=/sys/module/test_power/parameters

on() {		# TEXT BOUND DEEPEST ON_BATTERY
	once
	check "$1: applied" exit_code 0
	check "$1: $2, deepest state $3, verified" expect "apst('$evo')['tolerance_us'] == $2" "apst('$evo')['deepest_state'] == $3" \
		"apst('$evo')['verified'] is True" "table('$evo') == predicted('$evo', $2)" "status()['on_battery'] is $4"
}

check "no power supply at first" equal "$(ls /sys/class/power_supply | wc -l)" 0
on "no power supply" 25000 3 False

modprobe test_power
echo on >$parameters/ac_online
echo discharging >$parameters/battery_status
check "test_power has a battery" equal "$(cat /sys/class/power_supply/test_battery/type)" Battery
on "mains online" 25000 3 False

echo off >$parameters/ac_online
echo off >$parameters/usb_online
on "on battery" 100000 4 True

echo on >$parameters/usb_online
on "USB supply online" 25000 3 False

echo off >$parameters/usb_online
on "on battery again" 100000 4 True
echo on >$parameters/ac_online
on "plugged in again" 25000 3 False

rmmod test_power
modprobe -a uhid hid-generic
python3 /rig/wireless-mouse.py >/tmp/mouse.out 2>&1 &
mouse=$!
check "a mouse with a battery" wait_for 15 'grep -q Device /sys/class/power_supply/*/scope 2>/dev/null'
on "only a mouse has a battery" 25000 3 False
kill $mouse
