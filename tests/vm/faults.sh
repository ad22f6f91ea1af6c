#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# What runs inside the emulated machine with --faults: some verbs of tests/faults/run on a pacer under the libxdp
# dispatcher, which the machine that builds this may not have. A load takes seconds here: of its calls, kills and
# allocations each so manieth is tried, an odd number, so that both errors are.
export BUILD=/faults/build

echo "kernel $(uname -r) $(uname -v)"
for row in apply:29 load:97; do
	/usr/bin/python3 -I -B /faults/tests/faults/run --one --dispatcher "--stride=${row#*:}" "${row%:*}" 2>&1 >/tmp/told |
		tee /tmp/on >&2
	grep -E '^(ok|not ok) ' /tmp/told || echo "not ok ${row%:*}: $(tail -n 1 /tmp/on)"
	grep -vE '^(ok|not ok) ' /tmp/told >&2
done
true # whatever the last row had to say
