#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Metrics of a real pacer: the numbers that `stats` tells, in a form that Prometheus' own tools and a
# real Prometheus take; and a server that gets by with whoever calls.
#
#   client                                          server
#   10.77.0.11-18   c0 ------------------------ s0  the pacer, `export`, Prometheus
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/lib.sh
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3 # which has the packages of scripts/setup
monitoring=$here/../../docs/monitoring
exporter="" url="" watcher=""

# every: a policy with a limit of each kind; what is counted depends on no clock.
every()
{
	policy every <<-END
	bans: 64
	allow: [10.77.0.18/32]
	rules:
	  - name: window
	    match: {proto: udp, dport: 9000}
	    limits:
	      - {key: 'src/32,64', packets: 20, window: 1h, entries: 2000}
	      - {key: 'src/24,56', bytes: 1G, window: 1h}
	      - {key: all, uses: 100000, cooldown: 1h}
	  - name: rate
	    match: {proto: udp, dport: 9001}
	    limits: [{key: src, rate: 5/h, burst: 5}]
	  - name: bytes
	    match: {proto: udp, dport: 9002}
	    limits: [{key: src, rate: 8bit/s, burst: 2000}, {key: src, gap: 1us}]
	  - name: few
	    match: {proto: udp, dport: 9003}
	    limits: [{key: src, packets: 100, window: 1h, entries: 2}]
	  - name: ban
	    match: {proto: udp, dport: 9004}
	    limits: [{key: src, packets: 2, window: 1h}]
	    ban: 1h
	END
}

# Something of every kind: admitted, denied, banned, allowed, of no rule, not IP, cut short.
traffic()
{
	local i shots_of=()

	for i in 11 12 13 14 15 16 17; do
		shots_of+=("n=30,from=10.77.0.$i" "n=1,from=10.77.0.$i,dport=9003")
	done
	timeout -k 1 "$hang_s" "$shots" "$CLIENT" "$SERVER" "${shots_of[@]}" n=9,dport=9001,len=200 \
		n=9,dport=9002,len=600 n=9,dport=9004 n=9,from=10.77.0.12,dport=9004 \
		n=3,from=10.77.0.18 n=4,dport=7 n=2,raw=88b6 n=2,raw=0800450000 >"$work/arrived"
}

# textfile [INTERFACE...]: the metrics, in $work/m.prom
textfile()
{
	pacer export "$@" --textfile "$work/m.prom"
}

# value NAME [LABEL=VALUE...]: of what textfile has written, in a line.
value()
{
	local label series

	series=$(grep "^xdp_pacer_$1{" "$work/m.prom" || true)
	for label in "${@:2}"; do
		series=$(grep "[{,]${label%%=*}=\"${label#*=}\"" <<<"$series" || true)
	done
	awk '{ print $NF }' <<<"$series" | paste -sd ' '
}

# serve ARGUMENT...: an exporter in the background, with its address in $url.
serve()
{
	: >"$work/serving"
	background "$SERVER" "$BUILD/xdp-pacer" export "$@" >"$work/serving" 2>"$work/serving.err"
	exporter=$pid
	until_true 5 grep -q metrics "$work/serving" || fail "no exporter: $(cat "$work/serving.err")"
	url=$(grep -o 'http://.*' "$work/serving")
}

# ended: the exporter ends by the signal, with exit status 0, and has said so many lines.
ended()
{
	local code=0

	kill "-${2:-TERM}" "$exporter"
	wait "$exporter" || code=$?
	equal "$code" 0 "the exporter's exit status"
	equal "$(wc -l <"$work/serving.err")" "$1" "lines on stderr: $(cat "$work/serving.err")"
}

scrape()
{
	in_server "$python" "$here/scrape.py" "$@"
}

# watch CHECK URL...: scrape again and again, until watched says whether all was well.
watch()
{
	rm -rf "$work/watch"
	mkdir "$work/watch"
	background "$SERVER" "$python" "$here/scrape.py" "$@" "$work/watch"
	watcher=$pid
	until_true 5 test -e "$work/watch/begun"
}

watched()
{
	touch "$work/watch/end"
	wait "$watcher"
}

# --- what it says ---------------------------------------------------------------------------------

equals_stats()
{
	every
	load every
	traffic
	pacer stats s0 --json >"$work/stats.json"
	pacer status s0 --json >"$work/status.json"
	textfile s0
	"$python" "$here/scrape.py" same "$work/m.prom" "$work/stats.json" "$work/status.json"
	textfile
	"$python" "$here/scrape.py" same "$work/m.prom" "$work/stats.json" "$work/status.json"
	equal "$(stats .rules[4].denied.ban)" 12 "banned packets, so that there are some"
	equal "$(stat -c %a "$work/m.prom")" 644 "the file's mode"
	equal "$(pacer export s0 --textfile "$work/m.prom" --json | jq -c '[.interfaces, .up]')" "[1,1]" \
		"the JSON of --textfile"
	promtool check metrics <"$work/m.prom"
}

# Seven sources have an entry of their own under each limit, or share one where there are two.
entries()
{
	every
	load every
	traffic
	textfile s0
	equal "$(value entries rule=window limit=0)" 7 "entries in use"
	equal "$(value entries_shared rule=window limit=0)" 0 "shared entries in use"
	equal "$(value entries rule=window limit=1)" 1 "entries of one /24"
	[ "$(value entries_capacity rule=window limit=0)" -ge 2000 ] || fail "fewer entries than asked for"
	equal "$(value entries rule=few)" "$(value entries_capacity rule=few)" "entries of the full table"
	[ "$(value entries_shared rule=few)" -ge 1 ] || fail "nobody shares an entry"
	equal "$(value entries rule=window limit=2)" "" "entries of a throttle"
	equal "$(value bans rule=ban)" 2 "bans"
	equal "$(value limit_packets rule=window)" 20 "the window's packets"
	equal "$(value limit_gap_seconds)" 0.000001 "the gap"
	pacer set s0 few.packets=101 >/dev/null
	pacer ban s0 del all >/dev/null
	pacer ban s0 add 203.0.113.9 >/dev/null
	textfile s0
	equal "$(value limit_packets rule=few)" 101 "packets that were set"
	equal "$(value bans rule=ban)" 0 "bans that were lifted"
	equal "$(value bans rule=)" 1 "bans of sources"
	equal "$(value entries rule=window limit=0)" 7 "entries across a change"
}

changes()
{
	limit one 10
	limit two 20
	load one
	textfile s0
	equal "$(value policy_unconfirmed_seconds) $(value monitor)" "0 0" "unconfirmed, monitor"
	apply two --confirm-within 1h
	textfile s0
	[[ $(value policy_unconfirmed_seconds) =~ ^35[0-9][0-9](\.|$) ]] ||
		fail "unconfirmed for $(value policy_unconfirmed_seconds)"
	pacer confirm s0 >/dev/null
	pacer set s0 mode=monitor >/dev/null
	textfile s0
	equal "$(value policy_unconfirmed_seconds) $(value monitor)" "0 1" "unconfirmed, monitor"
	equal "$(value limit_packets)" 20 "the new limit"
}

# Policies come and go, and their rules' counters with them; tests/unit/test_figures.c has what
# befalls in the midst of a scrape.
never_back()
{
	local i

	for i in 1 2 3; do
		policy "r$i" <<-END
		rules:
		  - name: kept
		    match: {proto: udp, dport: 9000}
		    limits: [{key: src, packets: 2000, window: 1h}]
		  - name: other$i
		    match: {proto: udp, dport: 1$i}
		    limits: [{key: src, packets: 5, window: 1h}]
		END
	done
	load r1
	serve s0 --listen 127.0.0.1:0
	traffic_on 9000 980 10.77.0.11=2000
	watch steady "$url" kept
	for i in 2 3 1 2 3 1 2 3; do
		apply "r$i"
	done
	watched
	traffic_off
	ended 0
}

# --- who calls ------------------------------------------------------------------------------------

forms()
{
	every
	load every
	traffic
	serve --listen '[::1]:0' # of all
	scrape forms "$url"
	ended 0 INT
	serve s0 --listen 127.0.0.1:0
	scrape manners "$url"
	scrape crowd "$url"
	scrape forms "$url"
	ended 0
}

# The pacer goes, comes back and is replaced while it is looked at; what is gone is let go.
outlives()
{
	local id

	limit one 10
	load one
	id=$(status .program_id)
	serve s0 --listen 127.0.0.1:0
	now()
	{
		in_server "$python" -c 'import sys, urllib.request as u
sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())' "$url" >"$work/m.prom"
	}
	now
	equal "$(value up)" 1 "up"
	pacer unload s0
	until_true 5 is_gone "$id" || fail "the exporter holds what was unloaded"
	now
	now # what was said of it is not said again
	equal "$(value up)" 0 "up after an unload"
	equal "$(grep -c '^xdp_pacer_.*interface' "$work/m.prom")" 1 "series of what is gone"
	load one
	arrive 10 n=12
	now
	equal "$(value up) $(value packets_total verdict=admit)" "1 10" "a new pacer"
	load one --replace
	now
	equal "$(value up) $(value packets_total verdict=admit)" "1 0" "one in its place"
	ended 1
	grep -q "s0: has no pacer" "$work/serving.err"
}

is_gone()
{
	! bpftool prog show id "$1" >/dev/null 2>&1
}

# Unloads and loads beside scrapes: each scrape is whole, with the pacer or without.
unload_meanwhile()
{
	limit one 10
	load one
	serve s0 --listen 127.0.0.1:0
	watch whole "$url"
	for _ in 1 2 3; do
		pacer unload s0 >/dev/null
		load one
	done
	watched
	kill "$exporter"
	wait "$exporter"
}

# --- what goes wrong ------------------------------------------------------------------------------


taken()
{
	local place

	limit one 10
	load one
	serve s0 --listen 127.0.0.1:0
	place=${url#http://}
	place=${place%/metrics}
	refused 1 "$place: the port is taken" pacer export s0 --listen "$place"
	refused 1 "192.0.2.77:80: nothing can listen there: Cannot assign" pacer export --listen 192.0.2.77:80
	refused 2 "--listen wants a value: ADDR:PORT" pacer export --listen ""
	for bad in 80 127.0.0.1 127.0.0.1: :80 ::1:80 "[::1]" 127.0.0.1:65536 127.0.0.1:-1 nowhere:80 \
		127.0.0.1:80x "$(printf 'x%.0s' {1..300}):1"; do
		refused 2 "is not ADDR:PORT" pacer export --listen "$bad"
	done
	refused 2 "not both" pacer export --listen 127.0.0.1:1 --textfile x
	refused 1 "^xdp-pacer: averyveryverylongname: is longer than an interface's own name" \
		pacer export averyveryverylongname --textfile -
	ended 0
}

# A name without a pacer is said, and told by the file, too.
missing()
{
	refused 1 "s0: has no pacer" textfile s0
	equal "$(value up)" 0 "up of what has none"
	refused 1 "nosuch: there is no such interface" textfile nosuch
	textfile all
	equal "$(value up)" "" "up of none"
	limit one 10
	load one
	textfile all
	equal "$(value up) $(value monitor)" "1 0" "up of all"
	in_server ip link property add dev lo altname all # what is named so is meant, as other verbs have it
	refused 1 "all: is another name of lo" textfile all
	in_server ip link property del dev lo altname all
	equal "$(pacer export s0 --textfile - | grep -c ^xdp_pacer_up)" 1 "metrics on stdout"
	equal "$(pacer export s0 --textfile - --json | grep -c ^xdp_pacer_up)" 1 "metrics on stdout, and no JSON"
	ln -s "$work/m.prom" "$work/link"
	pacer export s0 --textfile "$work/link"
	[ -L "$work/link" ] || fail "a link was replaced, and not what it leads to"
	rm "$work/m.prom" # the link leads to nothing, as /dev/stdout does where stdout is closed
	refused 1 "link: the metrics cannot be written: No such file or directory" \
		pacer export s0 --textfile "$work/link"
	[ -L "$work/link" ] || fail "a link to nothing was replaced"
	ln -sf "$work/kept" "$work/link" # by whoever may write into the folder
	echo kept >"$work/kept"
	chown -h 65534 "$work/link"
	refused 1 "link: it is a link that another user has made" pacer export s0 --textfile "$work/link"
	mkdir -p "$work/theirs"
	mv "$work/link" "$work/theirs/m.prom"
	ln -s theirs/m.prom "$work/link" # one's own leads there
	refused 1 "link: it is a link that another user has made" pacer export s0 --textfile "$work/link"
	equal "$(cat "$work/kept")" kept "the file that another user chose"
	refused 1 "lo: has no pacer" pacer export s0 lo --textfile "$work/m.prom"
	equal "$(value up interface=s0) $(value up interface=lo)" "1 0" "up of two by name"
	equal "$(pacer export s0 lo --textfile "$work/m.prom" --json 2>/dev/null | jq -c '[.interfaces, .up]')" "[2,1]" \
		"the JSON of one that is up, of two"
	off
	stranger other xdp.other xdp
	textfile all
	equal "$(value up)" "" "up where the program is another's"
}

# Where nothing is said of it: the port that documents name.
usual_place()
{
	limit one 10
	load one
	serve s0
	equal "$url" http://127.0.0.1:10477/metrics "where it is" || return
	ended 0
}

# Who may open few files serves fewer callers at once.
few_files()
{
	limit one 10
	load one
	: >"$work/serving"
	background "$SERVER" prlimit --nofile=64:64 "$BUILD/xdp-pacer" export s0 --listen 127.0.0.1:0 >"$work/serving" 2>"$work/serving.err"
	exporter=$pid
	until_true 5 grep -q metrics "$work/serving" || fail "no exporter: $(cat "$work/serving.err")" || return
	url=$(grep -o 'http://.*' "$work/serving")
	in_server "$python" -c 'import sys, urllib.request as u
sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())' "$url" >"$work/m.prom"
	equal "$(value up)" 1 "up" || return
	ended 0
}

# A file that something is mounted on cannot be replaced: it stays, and nothing else is left.
mounted_on()
{
	limit one 10
	load one
	mkdir "$work/mounted"
	echo before >"$work/mounted/m.prom"
	in_server unshare --mount --propagation private bash -euc '
		mount --bind "$1/mounted/m.prom" "$1/mounted/m.prom"
		code=0
		"$2" export s0 --textfile "$1/mounted/m.prom" 2>"$1/err" || code=$?
		[ "$code" -eq 1 ]' bash "$work" "$BUILD/xdp-pacer"
	equal "$(cat "$work/err")" \
		"xdp-pacer: $work/mounted/m.prom: the metrics cannot be written: Device or resource busy" "what it says" || return
	equal "$(ls "$work/mounted") $(cat "$work/mounted/m.prom")" "m.prom before" "what is there"
}

# A signal that comes while it is written ends it once nothing is left beside it.
ended_as_it_is_written()
{
	local n code

	limit one 10
	load one
	mkdir "$work/ended"
	for n in 0 1 2; do # to the disk, closed, and given its name
		code=0
		in_server "$(tool cut)" fsync "$n" 0 -15 "$BUILD/xdp-pacer" export s0 --textfile "$work/ended/m.prom" ||
			code=$?
		equal "$code" 100 "exit code" || return
		equal "$(ls "$work/ended")" m.prom "what is there" || return
		grep -q ^xdp_pacer_up "$work/ended/m.prom" || fail "it is not whole" || return
		rm "$work/ended/m.prom"
	done
}

# On a full disk, or where there is no folder, what was there stays, and nothing else comes.
full_disk()
{
	limit one 10
	load one
	refused 1 "no/m.prom: the metrics cannot be written: No such file" \
		pacer export s0 --textfile "$work/no/m.prom"
	refused 1 "it is no file that could be replaced" pacer export s0 --textfile "$work"
	refused 1 "it is no file that could be replaced" pacer export s0 --textfile /dev/full
	pacer export s0 --textfile - 2>"$work/err" >/dev/full && fail "it fits /dev/full"
	grep -q 'the result cannot be written: No space left on device' "$work/err" || fail "$(cat "$work/err")"
	mkdir "$work/small"
	in_server unshare --mount --propagation private bash -euc '
		mount -t tmpfs -o size=8k small "$1/small"
		echo before >"$1/small/m.prom"
		dd if=/dev/zero of="$1/small/rest" bs=4k status=none 2>/dev/null || true
		code=0
		"$2" export s0 --textfile "$1/small/m.prom" 2>"$1/err" || code=$?
		[ "$code" -eq 1 ]
		[ "$(cat "$1/small/m.prom")" = before ]
		[ "$(ls "$1/small" | tr "\n" " ")" = "m.prom rest " ]
		rm "$1/small/rest"
		mount -o remount,size=1m "$1/small"
		"$2" export s0 --textfile "$1/small/m.prom"
		grep -q ^xdp_pacer_up "$1/small/m.prom"
		[ "$(ls "$1/small")" = m.prom ]' bash "$work" "$BUILD/xdp-pacer"
	equal "$(cat "$work/err")" \
		"xdp-pacer: $work/small/m.prom: the metrics cannot be written: No space left on device" "the complaint"
}

# --- Prometheus -----------------------------------------------------------------------------------

alerts()
{
	promtool check rules "$monitoring/alerts.yaml"
	promtool test rules "$here/alerts.yaml"
}

# ask PATH FILTER: what the Prometheus says.
ask()
{
	in_server "$python" -c 'import sys, urllib.request as u
sys.stdout.write(u.urlopen(sys.argv[1]).read().decode())' "http://$at/$1" | jq -rc "$2"
}

# scrapes: how many there have been.
scrapes()
{
	ask 'api/v1/query?query=count_over_time(xdp_pacer_up%5B1h%5D)' '.data.result[0].value[1] // 0' \
		2>/dev/null || echo 0
}

# is_scraped N: so often, at least.
is_scraped()
{
	local n

	n=$(scrapes)
	[ "${n:-0}" -ge "$1" ]
}

# A real one, on a port that is free in this namespace. Meanwhile, somebody says nothing.
prometheus()
{
	local at=127.0.0.1:9090 server idle

	every
	load every
	serve s0 --listen 127.0.0.1:10477
	cat >"$work/prometheus.yaml" <<-END
	global: {scrape_interval: 500ms, evaluation_interval: 500ms}
	rule_files: [$(realpath "$monitoring")/alerts.yaml]
	scrape_configs:
	  - job_name: xdp-pacer
	    static_configs: [{targets: ["127.0.0.1:10477"]}]
	END
	background "$SERVER" "$python" "$here/scrape.py" idle "$url"
	idle=$pid
	background "$SERVER" "$(type -P prometheus)" --config.file="$work/prometheus.yaml" \
		--storage.tsdb.path="$work/tsdb" --web.listen-address=$at --log.level=warn \
		>"$work/prometheus.log" 2>&1
	server=$pid
	until_true 10 is_scraped 1 || fail "nothing is scraped: $(tail -1 "$work/prometheus.log")"
	traffic
	until_true 10 is_scraped $(($(scrapes) + 2))
	equal "$(ask api/v1/targets '.data.activeTargets[0] | .health + .lastError')" up "the target"
	equal "$(ask 'api/v1/targets/metadata?metric=xdp_pacer_packets' '.data[0] | [.type, .unit]')" \
		'["counter","packets"]' "what it knows of a counter, which only OpenMetrics tells"
	equal "$(ask 'api/v1/query?query=sum(xdp_pacer_packets_total)' '.data.result[0].value[1]')" \
		"$(stats .packets)" "packets"
	scrape queries "http://$at" "$monitoring/dashboard.json"
	until_true 10 are_judged || fail "rules: $(ask api/v1/rules .data)"
	kill "$server"
	wait "$server"
	wait "$idle" || fail "an idle client was not cut off in time"
	ended 0
}

are_judged()
{
	[ "$(ask api/v1/rules '[.data.groups[].rules[].health] | unique')" = '["ok"]' ]
}

net_up
in_server ip link set lo up
check export-equals-stats equals_stats
check export-entries entries
check export-changes changes
check export-never-back never_back
check export-forms forms
check export-outlives outlives
check export-unload unload_meanwhile
check export-taken taken
check export-missing missing
check export-usual-place usual_place
check export-few-files few_files
check export-full-disk full_disk
check export-ended ended_as_it_is_written
check export-mounted-on mounted_on
check export-alerts alerts
check export-prometheus prometheus
finish
