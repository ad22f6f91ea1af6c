# shellcheck shell=bash disable=SC2016,SC2034 # what is for awk, and for who sources this
# SPDX-License-Identifier: GPL-2.0-only
#
# How a test is waited for that might never end: by whether it goes on. A time from its start would
# say how busy the machine is. It goes on as long as one of its files grows or its processes use the
# CPU; but one that says nothing for long, however busy, does not.
#
# Sourced. The test leads a session of its own (setsid), in which all of its processes are.

progress_look_s=5	# from one look to the next: a look takes some processes
progress_idle_s=60	# neither said anything nor used the CPU
progress_silent_s=600 # said nothing: a check that takes minutes says how far it is
progress_busy_s=300	# of a CPU, used in that time: a busy machine may have given it less
progress_late_s=1800	# said nothing, whatever it used

progress_ticks=$(getconf CLK_TCK) # a second, in /proc

# progress_of SESSION AWK: over its processes, with what proc(5) says of each but its name.
progress_of()
{
	{ cat /proc/[0-9]*/stat 2>/dev/null || true; } |
		sed 's/ (.*) / /' | awk -v session="$1" "\$5 == session $2"
}

# progress_used SESSION: of the CPU, in ticks, by those processes too that have ended.
progress_used()
{
	progress_of "$1" '{ n += $13 + $14 + $15 + $16 } END { print n + 0 }'
}

# progress_pids SESSION: those that have not ended.
progress_pids()
{
	progress_of "$1" '&& $2 != "Z" { print $1 }'
}

# progress_wait SESSION FILE...: until its leader has ended, which is a child of this shell. 1: it
# does not go on, and why is in $progress_why; it is left as it is.
progress_wait()
{
	local session=$1 used now_used=0 said=0 said_used now_said on_s=$SECONDS said_s=$SECONDS silent_s look_s nothing

	shift
	exec {nothing}<> <(:) # it never has anything to be read
	progress_why=""
	used=$(progress_used "$session")
	said_used=$used
	look_s=$SECONDS
	while kill -0 "$session" 2>/dev/null; do
		read -rt 0.1 -u "$nothing" || true
		((SECONDS >= look_s + progress_look_s)) || continue
		look_s=$SECONDS
		now_said=$(stat -c %s -- "$@" | paste -sd ' ')
		now_used=$(progress_used "$session")
		if [[ $now_said != "$said" ]]; then
			said=$now_said said_used=$now_used said_s=$SECONDS on_s=$SECONDS
		elif [[ $now_used != "$used" ]]; then
			on_s=$SECONDS
		fi
		used=$now_used
		silent_s=$((SECONDS - said_s))
		if ((SECONDS - on_s > progress_idle_s)); then
			progress_why="timed out: no progress for $progress_idle_s s"
		elif ((silent_s > progress_silent_s && used - said_used > progress_busy_s * progress_ticks)); then
			progress_why="timed out: no result for $progress_silent_s s"
		elif ((silent_s > progress_late_s)); then
			progress_why="timed out: no result for $progress_late_s s"
		else
			continue
		fi
		break
	done
	exec {nothing}>&-
	[[ -z $progress_why ]]
}

# progress_stop SESSION: all of its processes, by TERM first so that they can tidy up.
progress_stop()
{
	local signal pids i

	for signal in TERM KILL; do
		for ((i = 0; i < 100; i++)); do
			mapfile -t pids < <(progress_pids "$1")
			((${#pids[@]})) || return 0
			((i % 50)) || kill "-$signal" "${pids[@]}" 2>/dev/null || true
			sleep 0.1
		done
	done
}
