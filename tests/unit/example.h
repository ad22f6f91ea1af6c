/* SPDX-License-Identifier: GPL-2.0-only */
/* A policy with all that there is. */
#ifndef PACER_EXAMPLE_H
#define PACER_EXAMPLE_H

static const char example[] =
    "mode: enforce                      # enforce | monitor\n"
    "allow: [192.0.2.0/24, 2001:db8::/32]\n"
    "unparsed: pass                     # pass | drop\n"
    "rules:\n"
    "  - name: dns\n"
    "    match: {dst: 198.51.100.0/24, proto: udp, dport: 53}\n"
    "    limits:\n"
    "      - {key: src/32,64, gap: 1ms}\n"
    "      - {key: src/32,64, packets: 300, window: 1s, slots: 10}\n"
    "      - {key: src/24,56, bytes: 20M, window: 10s, slots: 16}\n"
    "      - {key: all, uses: 100000, cooldown: 10s, max_cooldown: 11s, threshold: 1000}\n"
    "    over: drop                     # drop | pass | pool scrub\n"
    "    ban: 30s\n"
    "pools:\n"
    "  - {name: scrub, targets: [veth1, veth2], each: 500, cooldown: 10m, max_cooldown: 11m, "
    "threshold: 50}\n"
    "sample: {of: denied, k: 64, window: 60s}\n";

#endif
