{
  "bans": null,
  "clock": "exact",
  "limits": [
    {
      "amount": 1000,
      "burst": 50,
      "effective_burst_ns": 50000000,
      "entries": 524098,
      "key": "src/32,64",
      "kind": "rate",
      "limit_index": 0,
      "per_ns": 1000000000,
      "rate": "1K/s",
      "rule": "a",
      "shared": 262050,
      "state_bytes": 12578368,
      "unit": "packets"
    },
    {
      "ceiling_pps": 1375760000000,
      "cells": 1375759,
      "effective_gap_ns": 1000,
      "false_delay": [
        {
          "chance": 0.000243727,
          "keys": 1000
        },
        {
          "chance": 0.0214869,
          "keys": 65536
        },
        {
          "chance": 0.625615,
          "keys": 1048576
        }
      ],
      "gap_ns": 1000,
      "key": "src/32,64",
      "kind": "gap",
      "limit_index": 1,
      "prolonged_by_ns": 0,
      "rule": "a",
      "state": "sketch",
      "state_bytes": 12578368
    },
    {
      "amount": 10000000,
      "burst": 64000,
      "effective_burst_ns": 51200000,
      "entries": 1000,
      "key": "src/24,56",
      "kind": "rate",
      "limit_index": 0,
      "per_ns": 8000000000,
      "rate": "10Mbit/s",
      "rule": "b",
      "shared": 500,
      "state_bytes": 24000,
      "unit": "bytes"
    },
    {
      "amount": 3,
      "burst": 3,
      "effective_burst_ns": 3600000000000,
      "entries": 0,
      "key": "all",
      "kind": "rate",
      "limit_index": 0,
      "per_ns": 3600000000000,
      "rate": "3/h",
      "rule": "c",
      "shared": 1,
      "state_bytes": 64,
      "unit": "packets"
    },
    {
      "amount": 3,
      "burst": 3,
      "effective_burst_ns": 3600000000000,
      "entries": 524098,
      "key": "src/32,64",
      "kind": "rate",
      "limit_index": 1,
      "per_ns": 3600000000000,
      "rate": "3/h",
      "rule": "c",
      "shared": 262050,
      "state_bytes": 12578368,
      "unit": "packets"
    },
    {
      "false_denial_beyond_ns": 10625000000,
      "kept_ns": 10250000000,
      "key": "src/32,64",
      "kind": "window",
      "limit": 20000000,
      "limit_index": 1,
      "newcomer_after_ns": 10875000000,
      "records": 98268,
      "rule": "e",
      "slot_ns": 625000000,
      "slots": 16,
      "state_bytes": 12578304,
      "sustains": 0.941176,
      "unit": "bytes",
      "unit_bytes": 1,
      "window_ns": 10000000000
    },
    {
      "buckets": 13,
      "buckets_max": 240,
      "cooldown_ns": 1000000000,
      "cpus": 2,
      "effective_cooldown_ns": 1000000000,
      "false_denial_free_below": 1,
      "key": "all",
      "kind": "throttle",
      "lease": 1,
      "lease_ns": 0,
      "leased_elsewhere": 0,
      "limit_index": 0,
      "max_cooldown_ns": 1100000000,
      "rule": "e",
      "state_bytes": 6312,
      "threshold": 1,
      "uses": 3
    }
  ],
  "memory_bytes": 69306272,
  "memory_parts_bytes": {
    "bans": 0,
    "free": 16771392,
    "limits": 50337472,
    "rest": 692128,
    "samples": 697344,
    "throttles": 807936
  },
  "missing_targets": [],
  "pools": [],
  "resolution_ns": 0,
  "rules": 4,
  "sample": {
    "k": 64,
    "memory_bytes": 697344,
    "of": "denied",
    "packets": 1000,
    "replacement": "without",
    "snap_bytes": 0,
    "tick_ns": 0,
    "window_ns": 0
  },
  "state_bytes": 67108864,
  "state_used_bytes": 50337472
}
