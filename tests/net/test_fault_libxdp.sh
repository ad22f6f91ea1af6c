#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A load through libxdp is whole or has not happened, whichever bpf(2) of it fails.
#
#   client                                   server
#   10.77.0.11-18   c0 ---------------- s0   xdp-pacer load, of which a call fails
#
# shellcheck disable=SC2317 # the functions are reached through check
# shellcheck source=tests/net/fault.sh
. "$(dirname "$0")/fault.sh"

# What comes before the first of these calls of bpf(2) is the same with --direct: see test_fault.sh.
net_up
check fault-libxdp-bpf each_fails bpf "$eperm" 32 100
finish
