# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# For whoever ends what it has begun, where much is begun: numbers of processes come round within minutes,
# and the number of one that has ended is another's by then.

# end_jobs SIGNAL: to the jobs of this shell that have not ended.
end_jobs()
{
	local running

	mapfile -t running < <(jobs -pr)
	((!${#running[@]})) || kill "-$1" "${running[@]}" 2>/dev/null || true
}

# since PID: when it began, by the kernel's clock; nothing if it is not there.
since()
{
	local stat

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	stat=${stat##*) } # of what comes behind its name, the twentieth
	awk '{ print $20 }' <<<"$stat"
}

# remember PID FILE: for end_remembered, by a shell whose job it is not, too.
remember()
{
	echo "$1 $(since "$1")" >>"$2"
}

# end_remembered SIGNAL FILE: to those that are there still.
end_remembered()
{
	local pid began

	while read -r pid began; do
		[ -z "$began" ] || [ "$(since "$pid")" != "$began" ] || kill "-$1" "$pid" 2>/dev/null || true
	done <"$2"
}
