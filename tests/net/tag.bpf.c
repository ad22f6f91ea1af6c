// SPDX-License-Identifier: GPL-2.0-only
/* Gives what an interface sends a tag of VLAN 5, as an interface of a VLAN above it does. */
#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("tc") int tag(struct __sk_buff *skb)
{
	bpf_skb_vlan_push(skb, bpf_htons(0x8100), 5);
	return 0; /* TC_ACT_OK */
}
