/* SPDX-License-Identifier: GPL-2.0-only */
/* Files of prefixes: what feeds and people write is read, and what is wrong is named. */
#include "oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sets/read.h"

static struct policy_error error;

static int read_len(const char *text, size_t len, uint32_t value_field, struct set_text *out)
{
	struct set_source source = {"drop.txt", value_field, NULL};

	memset(&error, 0, sizeof(error));
	return set_read(text, len, &source, out, &error);
}

/* The list as text: "192.0.2.0/24 2001:db8::/32", with "=NAME" where there are values. */
static const char *listed(const struct set_text *t)
{
	static char all[4096];
	size_t n = 0;

	all[0] = 0;
	for (size_t i = 0; i < t->list.n && n + 200 < sizeof(all); i++) {
		struct prefix p = set_entry_prefix(&t->list.entry[i]);
		char one[64];

		n +=
		    (size_t)snprintf(all + n, sizeof(all) - n, "%s%s%s%s", i ? " " : "",
				     units_prefix_text(&p, one, sizeof(one)), t->names.n ? "=" : "",
				     t->names.n ? t->names.name[t->list.entry[i].value - 1] : "");
	}
	return all;
}

#define LONG48 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* As ipset 7.17 saves it. */
#define IPSET_HASH(more)                                                \
	"create x hash:ip family inet hashsize 1024 maxelem 65536" more \
	" bucketsize 12 initval 0x09157e7c\n"

struct text {
	const char *text, *want;
	uint32_t value_field;
};

static const struct text right[] = {
    {"192.0.2.1\n", "192.0.2.1", 0},
    {"192.0.2.1", "192.0.2.1", 0},
    {"192.0.2.0/24\r\n2001:db8::/32\r\n", "192.0.2.0/24 2001:db8::/32", 0},
    {"\xef\xbb\xbf"
     "0.0.0.0/0\n::/0\n",
     "0.0.0.0/0 ::/0", 0},
    {"255.255.255.255/32\n::1/128\n", "255.255.255.255 ::1", 0},
    {"# a\n; b\n\n   \n  192.0.2.1  # c\n192.0.2.2 ; SBL256894\n192.0.2.3\t#d\n",
     "192.0.2.1 192.0.2.2 192.0.2.3", 0},
    /* Sorted, and each once. */
    {"2001:db8::\n10.0.0.0/8\n10.1.0.0/16\n10.0.0.0/8\n10.0.0.0\n",
     "10.0.0.0/8 10.0.0.0 10.1.0.0/16 2001:db8::", 0},
    /* Ranges, as few prefixes as there can be. */
    {"192.0.2.0-192.0.2.255", "192.0.2.0/24", 0},
    {"192.0.2.1-192.0.2.6", "192.0.2.1 192.0.2.2/31 192.0.2.4/31 192.0.2.6", 0},
    {"192.0.2.7 - 192.0.2.8", "192.0.2.7 192.0.2.8", 0},
    {"192.0.2.7- 192.0.2.7", "192.0.2.7", 0},
    {"0.0.0.0-255.255.255.255", "0.0.0.0/0", 0},
    {"255.255.255.254-255.255.255.255", "255.255.255.254/31", 0},
    {"::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::/0", 0},
    {"2001:db8::ffff-2001:db8::1:0", "2001:db8::ffff 2001:db8::1:0", 0},
    /* ipset save */
    {"create drop hash:net family inet hashsize 1024 maxelem 65536\nadd drop 192.0.2.0/24\n"
     "add drop 198.51.100.1 comment \"a # b\"\n",
     "192.0.2.0/24 198.51.100.1", 0},
    {"add x 192.0.2.1 packets 5 bytes 6 skbprio 1:2\n", "192.0.2.1", 0},
    {"create x hash:ip\nadd x 192.0.2.1 skbmark 0x1/0x2 skbqueue 3\n", "192.0.2.1", 0},
    {"create x bitmap:ip range 192.0.2.0-192.0.2.9\nadd x 192.0.2.1\n", "192.0.2.1", 0},
    {"create x hash:ip family inet hashsize 1024 maxelem 65536 timeout 100 counters comment skbinfo"
     " forceadd bucketsize 12 initval 0x81523696\n"
     "add x 192.0.2.1 timeout 49 packets 3 bytes 4 comment \"a # b nomatch\" skbmark 0x1/0x2"
     " skbprio 1:2 skbqueue 3\n"
     "add x 192.0.2.2 timeout 99 packets 0 bytes 0 comment \"it; { x,\ty }\"\n",
     "192.0.2.1 192.0.2.2", 0},
    {"create x hash:ip -exist\nflush x\nadd x 192.0.2.1 -exist\nadd x 192.0.2.3 -!\n",
     "192.0.2.1 192.0.2.3", 0},
    /* The length that its elements have, and do not show; one of all bits is not printed. */
    {IPSET_HASH(" netmask 24") "add x 192.0.2.0\nadd x 198.51.100.0\n",
     "192.0.2.0/24 198.51.100.0/24", 0},
    {"create x hash:ip family inet6 hashsize 1024 maxelem 65536 netmask 64 bucketsize 12\n"
     "add x 2001:db8::\n",
     "2001:db8::/64", 0},
    {"create x hash:ip netmask 128 family inet6\nadd x 2001:db8::\n", "2001:db8::", 0},
    {"create x hash:ip family inet6 netmask 1\nadd x 8000::\n", "8000::/1", 0},
    {"create x bitmap:ip range 192.0.0.0-192.0.255.255 netmask 24\nadd x 192.0.2.0\n",
     "192.0.2.0/24", 0},
    {"create netmask hash:ip netmask 1\nadd netmask 128.0.0.0\n", "128.0.0.0/1", 0},
    /* As ipset takes what it would print otherwise: each network that an address is in. */
    {"create x hash:ip netmask 24\nadd x 192.0.2.77\nadd x 198.51.100.0/22\nadd x 203.0.113.64/26\n"
     "add x 10.0.0.9-10.0.1.2\n",
     "10.0.0.0/23 192.0.2.0/24 198.51.100.0/22 203.0.113.0/24", 0},
    /* nft list set */
    {"table inet filter {\n\tset drop {\n\t\ttype ipv4_addr\n\t\tflags interval\n"
     "\t\telements = { 192.0.2.0/24, 198.51.100.1-198.51.100.2,\n"
     "\t\t\t     203.0.113.9 counter packets 1 bytes 2 }\n\t}\n}\n",
     "192.0.2.0/24 198.51.100.1 198.51.100.2 203.0.113.9", 0},
    {"set x {\n\ttype ipv6_addr\n\telements = { 2001:db8::1 timeout 1h expires 5m }\n}\n",
     "2001:db8::1", 0},
    {"set x {\n\ttypeof ip saddr\n\tcomment \"a } set elements = { 1\"\n"
     "\telements = { 192.0.2.1 comment \"} b, c\", 192.0.2.2 comment \"{\",\n"
     "\t\t192.0.2.3 comment \"# d\" } }\n}\n",
     "192.0.2.1 192.0.2.2 192.0.2.3", 0},
    {"set elements {\n\telements = { 192.0.2.1 };\n}\n"
     "chain c {\n\tip saddr { 192.0.2.3 } drop\n}\n",
     "192.0.2.1", 0},
    {"table inet filter {\n\tset x{\n\t\ttype ipv4_addr\n\t}\n}\n"
     "add element inet filter x { 192.0.2.1 }\nadd element inet filter x { 192.0.2.2 }\n"
     "table inet filter { set x {\nelements = { 192.0.2.3 }\n}\n}\n",
     "192.0.2.1 192.0.2.2 192.0.2.3", 0},
    {"set x {\nelements = { 192.0.2.1 }\n}\nset x {\nelements = { 192.0.2.2 }\n}\n",
     "192.0.2.1 192.0.2.2", 0},
    {"flush set inet filter x\nadd element inet filter x { 192.0.2.1, 2001:db8::1 }\n",
     "192.0.2.1 2001:db8::1", 0},
    /* What takes no elements away. */
    {"{ 192.0.2.1 }\nflush chain ip f c\nflush table ip f\n", "192.0.2.1", 0},
    {"{ 192.0.2.1,\n 192.0.2.2,\n}\n", "192.0.2.1 192.0.2.2", 0},
    /* CSV */
    {"192.0.2.1,2024-01-01,bot\n198.51.100.0/24,x\n", "192.0.2.1 198.51.100.0/24", 0},
    {"1.0.0.0/24,1.0.0.0,1.0.0.255,AU\n10.1.0.0/16,10.1.0.1\n10.0.0.0-10.0.0.7,10.0.0.0,x\n",
     "1.0.0.0/24 10.0.0.0/29 10.1.0.0/16", 0},
    {"10.1.0.0/16,10.1.255.255\n10.2.0.0/16,10.2.0.0/16\n", "10.1.0.0/16 10.2.0.0/16", 0},
    {"network,geoname_id\n192.0.2.0/24,\"a,b\"\n", "192.0.2.0/24", 0},
    {"192.0.2.0/24,XY\n198.51.100.0/24,\"ZZ\"\n2001:db8::/32, XY\n",
     "192.0.2.0/24=XY 198.51.100.0/24=ZZ 2001:db8::/32=XY", 2},
    {"\"192.0.2.0\",\"192.0.2.255\",\"XY\",\"Xyland\"\n", "192.0.2.0/24=XY", 3},
    {"192.0.2.0/24\tXY\n", "192.0.2.0/24=XY", 2},
    /* Between tabs, with commas in a field; and between commas, with tabs. */
    {"1.0.0.0\t1.0.0.255\t13335\tUS\tX\n1.0.1.0\t1.0.1.255\t4134\tCN\tNo.31,Jin-rong Street\n",
     "1.0.0.0/24=US 1.0.1.0/24=CN", 4},
    {"first\tlast\tname, and where\n192.0.2.0\t192.0.2.255\t\"X, Y\"\n", "192.0.2.0/24=X, Y", 3},
    {"192.0.2.1\ta,b\n\"198.51.100.1\"\t\"c,d\"\n203.0.113.1 \te,f\n",
     "192.0.2.1 198.51.100.1 203.0.113.1", 0},
    {"192.0.2.0/24,\"a\tb\",XY\n198.51.100.0/24,c\td,XY\n\"203.0.113.0/24\"\t ,e\t,XY\n",
     "192.0.2.0/24=XY 198.51.100.0/24=XY 203.0.113.0/24=XY", 3},
    {"\"192.0.2.0\t-\t192.0.2.255\",XY\n", "192.0.2.0/24=XY", 2},
    /* A range with tabs among its blanks; and '-' for a field of which nothing is known. */
    {"192.0.2.0\t- 192.0.2.255\n198.51.100.0 \t-198.51.100.255\n203.0.113.0 -\t203.0.113.255\n",
     "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24", 0},
    {"192.0.2.0\t- 192.0.2.255\tXY\n", "192.0.2.0/24=XY", 2},
    {"192.0.2.0\t-\t192.0.2.255,XY\n198.51.100.0\t-\t198.51.100.255 ,\"X\"\n",
     "192.0.2.0/24 198.51.100.0/24", 0},
    {"192.0.2.0\t-\tXY\n", "192.0.2.0=XY", 3},
    {"192.0.2.0\t-\t192.0.2.255\tXY\n", "192.0.2.0=XY", 4},
    {"192.0.2.0\t-\t192.0.2.255\n", "192.0.2.0=-", 2},
    {"192.0.2.1,-,198.51.100.7\n192.0.2.3\t-x\t192.0.2.9\n192.0.2.5\t-\n192.0.2.7\t- x\n",
     "192.0.2.1 192.0.2.3 192.0.2.5 192.0.2.7", 0},
    {"192.0.2.0/24,5\" disk\n198.51.100.0/24,b\n", "192.0.2.0/24 198.51.100.0/24", 0},
    {"192.0.2.0/24," LONG48 "xxxxxxxxxxxxxxX\n", "192.0.2.0/24=" LONG48 "xxxxxxxxxxxxxxX", 2},
    {"192.0.2.0/24,C\xc3\xb4te d'Ivoire\n", "192.0.2.0/24=C\xc3\xb4te d'Ivoire", 2},
    {"192.0.2.0/24,\"X # Y\" # a comment\n", "192.0.2.0/24=X # Y", 2},
    /* Ranges that end where netmasks do: those to the end of all. */
    {"0.0.0.0,255.255.255.255,any\n", "0.0.0.0/0=any", 3},
    {"224.0.0.0,255.255.255.255,ZZ\n", "224.0.0.0/3=ZZ", 3},
    {"255.255.255.252,255.255.255.254,ZZ\n192.0.2.1,192.0.2.1,XX\n",
     "192.0.2.1=XX 255.255.255.252/31=ZZ 255.255.255.254=ZZ", 3},
    {"128.0.0.0,255.255.255.255,ZZ\n", "128.0.0.0/1=ZZ", 3},
    {"223.255.255.0\t255.255.255.255\t0\tNone\tNot routed\n", "223.255.255.0/24=0 224.0.0.0/3=0",
     3},
    {"0.0.0.0,0.0.0.0,ZZ\n192.0.2.0,192.0.2.253,XX\n",
     "0.0.0.0=ZZ 192.0.2.0/25=XX 192.0.2.128/26=XX 192.0.2.192/27=XX 192.0.2.224/28=XX "
     "192.0.2.240/29=XX 192.0.2.248/30=XX 192.0.2.252/31=XX",
     3},
    /* A length in a field of its own, as in pfx2as: with a value behind it, or none asked for. */
    {"1.0.0.0\t24\t13335\n8.0.0.0\t9\t3356_209\n2001:db8::\t32\t64496\n9.9.9.9\t32\t19281\n",
     "1.0.0.0/24=13335 8.0.0.0/9=3356_209 9.9.9.9=19281 2001:db8::/32=64496", 3},
    {"1.0.0.0\t24\t13335\n8.0.0.0\t9\t3356,209\n", "1.0.0.0/24 8.0.0.0/9", 0},
    {"network,bits,as\n\"1.0.0.0\", \"24\" ,AS1\n0.0.0.0,0,AS2\n1.0.1.0/24,9,AS3\n",
     "0.0.0.0/0=AS2 1.0.0.0/24=AS1 1.0.1.0/24=AS3", 3},
    {"1.0.0.0,24\n8.0.0.0,9\n192.0.2.1\n", "1.0.0.0/24 8.0.0.0/9 192.0.2.1", 0},
    /* Other numbers: a count, a port, or the value. The first line where it can tell, tells. */
    {"192.0.2.1\t9\n198.51.100.0\t24\n", "192.0.2.1 198.51.100.0", 0},
    {"192.0.2.1,32\n192.0.2.2,22,ssh\n192.0.2.4,30\n", "192.0.2.1 192.0.2.2 192.0.2.4", 0},
    {"192.0.2.0,33,XY\n192.0.2.4,30,XY\n", "192.0.2.0=XY 192.0.2.4=XY", 3},
    {"192.0.2.1,x\n8.0.0.0,9\n", "8.0.0.0/9 192.0.2.1", 0},
    {"192.0.2.0,24\n198.51.100.0\t8\n2001:db8::,32\n", "192.0.2.0=24 198.51.100.0=8 2001:db8::=32",
     2},
    {"start_ip,end-ip,country\n192.0.2.0/24,a,1\n192.0.2.0/24,b,1\n192.0.2.0/25,c,2\n",
     "192.0.2.0/24=1 192.0.2.0/25=2", 3},
};

static void feeds(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY(right); i++) {
		struct set_text t;

		if (read_len(right[i].text, strlen(right[i].text), right[i].value_field, &t))
			fail_msg("%s: line %d: %s", right[i].text, error.line, error.text);
		assert_string_equal(listed(&t), right[i].want);
		set_text_free(&t);
	}
}

struct bad {
	const char *text;
	int line;
	const char *want; /* all of the error */
	uint32_t value_field;
};

#define NO_VALUE SET_NAME_TODO
#define NO_END	 "each prefix has a line, with all its fields"
#define WRITE	 "write 192.0.2.0/24, 2001:db8::/32 or 192.0.2.1-192.0.2.9"

#define IS_NETMASK(mask) "a netmask '" mask "': write the length of the prefix: /24"
#define IS_NO_LENGTH(field, address, line)                               \
	"'" field "' is no length of a prefix that begins with " address \
	", and field 2 of line " line " is one: mend it, or leave that field out of all lines"
#define LINE	 "begin a line with elements =, as nft list set does"
#define BRACES	 "write elements = { 192.0.2.0/24, ... }"
#define ALONE	 "list one alone: nft list set FAMILY TABLE NAME"
#define NETMASK	 "create it with netmask, or list them in one of hash:net"
#define LENGTH	 "write 1 to 32 for IPv4, 1 to 128 for IPv6"
#define AS_SAVED "it may change what the set has: leave it out, as ipset save does"
#define ONE	 "save one alone: ipset save NAME"
#define ALL	 "a set has them all: leave these out, as nft list set does"

static const struct bad bad[] = {
    {"", 0, "it has no prefix: a set that is meant to be empty is written of: []", 0},
    {"# nothing\n", 0, "it has no prefix: a set that is meant to be empty is written of: []", 0},
    {"192.0.2.1\nexample.org\n", 2, "no address, prefix or range 'example.org': " WRITE, 0},
    {"<html>\n", 1, "no address, prefix or range '<html>': " WRITE, 0},
    {"192.0.2.256", 1, "no address, prefix or range '192.0.2.256': " WRITE, 0},
    {"192.0.2", 1, "no address, prefix or range '192.0.2': " WRITE, 0},
    {"192.0.2.01", 1, "no address, prefix or range '192.0.2.01': " WRITE, 0},
    {"192.0.2.1.2", 1, "no address, prefix or range '192.0.2.1.2': " WRITE, 0},
    {"fe80::1%eth0", 1, "no address, prefix or range 'fe80::1%eth0': " WRITE, 0},
    {"10/8", 1, "no address, prefix or range '10/8': " WRITE, 0},
    {"/24", 1, "no address, prefix or range '/24': " WRITE, 0},
    {"-", 1, "no address, prefix or range '-': " WRITE, 0},
    {"\x1b[31mred", 1, "no address, prefix or range '\\x1b[31mred': " WRITE, 0},
    {"\n\n192.0.2.1/24", 3,
     "'192.0.2.1/24' has host bits: write 192.0.2.0/24 for the network, or 192.0.2.1 for the host",
     0},
    {"2001:db8::1/32", 1,
     "'2001:db8::1/32' has host bits: write 2001:db8::/32 for the network, or 2001:db8::1 for the "
     "host",
     0},
    {"192.0.2.0/33", 1,
     "no length of a prefix '192.0.2.0/33': write /0 to /32 for IPv4, /0 to /128 for IPv6", 0},
    {"2001:db8::/129", 1,
     "no length of a prefix '2001:db8::/129': write /0 to /32 for IPv4, /0 to /128 for IPv6", 0},
    {"192.0.2.0/", 1,
     "no length of a prefix '192.0.2.0/': write /0 to /32 for IPv4, /0 to /128 for IPv6", 0},
    {"192.0.2.0/255.255.255.0", 1,
     "a netmask '192.0.2.0/255.255.255.0': write the length of the prefix: /24", 0},
    {"192.0.2.9-192.0.2.1", 1,
     "a range that ends before it begins '192.0.2.9-192.0.2.1': exchange its ends", 0},
    {"192.0.2.9-2001:db8::", 1,
     "a range from one family to the other '192.0.2.9-2001:db8::': write two ranges", 0},
    {"::ffff:192.0.2.1", 1,
     "an IPv4 address in the form of IPv6 '::ffff:192.0.2.1': no packet has it: write 192.0.2.1",
     0},
    {"::ffff:192.0.2.0/120", 1,
     "an IPv4 address in the form of IPv6 '::ffff:192.0.2.0/120': no packet has it: write "
     "192.0.2.1",
     0},
    {"::ffff:192.0.2.1-2001:db8::", 1,
     "an IPv4 address in the form of IPv6 '::ffff:192.0.2.1-2001:db8::': no packet has it: write "
     "192.0.2.1",
     0},
    {"::1-::ffff:192.0.2.1", 1,
     "an IPv4 address in the form of IPv6 '::1-::ffff:192.0.2.1': no packet has it: write "
     "192.0.2.1",
     0},
    {"192.0.2.1 192.0.2.2", 1,
     "more than an address: '192.0.2.2': one on a line; # begins a comment", 0},
    {"192.0.2.1, 192.0.2.2", 1,
     "two addresses: with '192.0.2.2': write a range as 192.0.2.1-192.0.2.9, or one address on a "
     "line",
     0},
    {"1.0.0.0,255.255.255.0,XX\n", 1, IS_NETMASK("255.255.255.0"), 3},
    {"10.0.0.0,255.0.0.0,XX\n", 1, IS_NETMASK("255.0.0.0"), 3},
    {"0.0.0.0,128.0.0.0,XX\n", 1, IS_NETMASK("128.0.0.0"), 3},
    {"224.0.0.0\t255.255.255.252\tXX\n", 1, IS_NETMASK("255.255.255.252"), 3},
    {"192.0.2.2,255.255.255.254,XX\n", 1, IS_NETMASK("255.255.255.254"), 3},
    {"223.255.255.255,255.255.255.255,XX\n", 1, IS_NETMASK("255.255.255.255"), 3},
    {"10.1.0.0/16,10.2.0.1\n", 1, "two prefixes: with '10.2.0.1': write one on a line", 0},
    {"10.1.0.0/16,10.0.255.255-10.1.0.0\n", 1,
     "two prefixes: with '10.0.255.255-10.1.0.0': write one on a line", 0},
    {"10.1.0.0/16,2001:db8::1\n", 1, "two prefixes: with '2001:db8::1': write one on a line", 0},
    {"a00::/8,10.2.0.1\n", 1, "two prefixes: with '10.2.0.1': write one on a line", 0},
    {"10.0.0.0/8,11.0.0.0/8\n", 1, "two prefixes: with '11.0.0.0/8': write one on a line", 0},
    {"192.0.2.1\t-\t198.51.100.7\n", 1,
     "a range, or two addresses: '192.0.2.1\\x09-\\x09198.51.100.7': write a range as "
     "192.0.2.1-192.0.2.9, or one address on a line",
     0},
    {"192.0.2.1\t\t-\t\t192.0.2.9\tXY\n", 1,
     "a range, or two addresses: '192.0.2.1\\x09\\x09-\\x09\\x09192.0.2.9\\x09XY': write a range "
     "as "
     "192.0.2.1-192.0.2.9, or one address on a line",
     0},
    {"192.0.2.1\t192.0.2.9,XY\n", 1, "two prefixes: with '192.0.2.9,XY': write one on a line", 0},
    {"10.0.0.0/8\t\"11.0.0.1-11.0.0.9\"\n", 1,
     "two prefixes: with '11.0.0.1-11.0.0.9': write one on a line", 0},
    {"\"192.0.2.1,2\"\tXY\n", 1, "no address, prefix or range '192.0.2.1,2': " WRITE, 0},
    {"10.0.0.0/8,x\n10.0.0.0/8, 2001:db8::1/32, x\n", 2,
     "two prefixes: with '2001:db8::1/32': write one on a line", 0},
    {"create x hash:ip,port family inet\n", 1,
     "an ipset of type 'hash:ip,port': sets are of addresses alone: hash:ip, hash:net or bitmap:ip",
     0},
    {"create x hash:net,iface family inet\n", 1,
     "an ipset of type 'hash:net,iface': sets are of addresses alone: hash:ip, hash:net or "
     "bitmap:ip",
     0},
    {IPSET_HASH(" bitmask 255.255.0.255") "add x 192.0.0.77\n", 1,
     "an ipset of 'bitmask': its elements may be no prefixes: " NETMASK, 0},
    {"create x hash:ip netmask 0\n", 1, "no netmask '0': " LENGTH, 0},
    {"create x hash:ip netmask 33\n", 1, "no netmask '33': " LENGTH, 0},
    {"create x hash:ip netmask 024\n", 1, "no netmask '024': " LENGTH, 0},
    {"create x hash:ip family inet6 netmask 129\n", 1, "no netmask '129': " LENGTH, 0},
    {"create x hash:ip netmask 255.255.255.0\n", 1, "no netmask '255.255.255.0': " LENGTH, 0},
    {"create x hash:ip netmask\n", 1, "no netmask '': " LENGTH, 0},
    {"create x bitmap:ip range 192.0.2.0-192.0.2.255 netmask 64\n", 1, "no netmask '64': " LENGTH,
     0},
    {"create x hash:ip netmask 24\nadd x 192.0.2.0\nadd x 2001:db8::\n", 3,
     "an address of the other family '2001:db8::': the ipset is of IPv4, and so is its netmask", 0},
    {"create x hash:ip family inet6 netmask 32\nadd x 192.0.2.0\n", 2,
     "an address of the other family '192.0.2.0': the ipset is of IPv6, and so is its netmask", 0},
    /* What might change what the elements mean. */
    {"create x hash:net netmask 24\n", 1, "an ipset with 'netmask': " AS_SAVED, 0},
    {"create x hash:ip --netmask 24\n", 1, "an ipset with '--netmask': " AS_SAVED, 0},
    {"create a b hash:ip family inet\n", 1,
     "an ipset of type 'b': sets are of addresses alone: hash:ip, hash:net or bitmap:ip", 0},
    {"create x hash:ip family inet5\n", 1, "no family of an ipset 'inet5': write inet or inet6", 0},
    {"add x 192.0.2.1\nadd y 192.0.2.2\n", 2, "a second ipset 'y': " ONE, 0},
    {"create x hash:ip\nadd x 192.0.2.1\ncreate y hash:ip\nadd y 192.0.2.2\n", 3,
     "a second ipset 'y': " ONE, 0},
    {"add x 192.0.2.0\ncreate x hash:ip netmask 24\n", 2, "a second ipset 'x': " ONE, 0},
    /* A comment that goes over lines, of which others look like elements. */
    {"add x 192.0.2.1 comment \"a\nadd x 192.0.2.2\n#\"\n", 1,
     "a quote without its end: 'x 192.0.2.1 comment \"a': a comment of ipset is on one line", 0},
    /* What takes elements away. */
    {"add x 192.0.2.1\nflush x\nadd x 192.0.2.2\n", 2, "what takes elements away: 'flush x': " ALL,
     0},
    {"flush x\nadd x 192.0.2.1\ndel x 192.0.2.1\n", 3,
     "what takes elements away: 'del x 192.0.2.1': " ALL, 0},
    {"add x 192.0.2.1\ndel x 192.0.2.1\n", 2, "no address, prefix or range 'del': " WRITE, 0},
    {"table ip f {\nset x {\nelements = { 192.0.2.1 }\n}\nset y {\nelements = { 192.0.2.2 "
     "}\n}\n}\n",
     5, "a second set 'y': " ALONE, 0},
    {"table ip f {\nset x {\nelements = { 192.0.2.1 }\n}\n}\ntable ip6 f {\nset x {\n", 7,
     "a second set 'x': " ALONE, 0},
    {"table ip f { set x {\nelements = { 192.0.2.1 }\n}\n}\ntable ip f { set y {\n", 5,
     "a second set 'y': " ALONE, 0},
    {"add element ip f x { 192.0.2.1 }\nadd element ip f y { 192.0.2.2 }\n", 2,
     "a second set 'y': " ALONE, 0},
    {"add element ip f x { 192.0.2.1 }\nadd element ip g x { 192.0.2.2 }\n", 2,
     "a second set 'x': " ALONE, 0},
    {"add x 192.0.2.0/24 nomatch\n", 1,
     "an exception 'nomatch': sets have none: leave it out, and let an earlier rule pass it", 0},
    {"elements = { 192.0.2.1,\n192.0.2.2\n", 2, "it ends within braces: add a '}'", 0},
    /* What would be lost. */
    {"elements = { 192.0.2.1 comment \"a\" } elements = { 192.0.2.2 }\n", 1,
     "more behind elements: 'elements = { 192.0.2.2 }': write it on a line of its own", 0},
    {"{ 192.0.2.1,\n192.0.2.2 } x", 2, "more behind elements: 'x': write it on a line of its own",
     0},
    {"set x { type x; elements = { 192.0.2.1 } }\n", 1,
     "elements behind something else: "
     "'set x { type x; elements = { 192.0.2.1 } }': " LINE,
     0},
    {"table x {\nset x {elements={ 192.0.2.1 }}\n", 2,
     "elements behind something else: "
     "'set x {elements={ 192.0.2.1 }}': " LINE,
     0},
    {"{ 192.0.2.1 }\n192.0.2.2\n", 2, "an address that is in no braces: '192.0.2.2': " BRACES, 0},
    {"{ 192.0.2.1 }\n192.0.2.2/24 x\n", 2,
     "an address that is in no braces: '192.0.2.2/24 x': " BRACES, 0},
    {"{ 192.0.2.1 }\ndelete element x { 192.0.2.1 }\n", 2,
     "what takes elements away: 'delete element x { 192.0.2.1 }': " ALL, 0},
    {"{ 192.0.2.1 }\ndestroy element x { 192.0.2.1 }\n", 2,
     "what takes elements away: 'destroy element x { 192.0.2.1 }': " ALL, 0},
    {"elements = \"{\"\n", 1,
     "elements without a brace 'elements = \"{\"': write elements = { 192.0.2.0/24, ... }", 0},
    {"set x {\n\ttype inet_service\n", 2,
     "a set of 'type inet_service': sets are of addresses alone", 0},
    {"\x1f\x8b\x08", 1, "it is compressed: unpack it with gunzip", 0},
    {"192.0.2.0/24\n", 1, "1 field, and value is field 2: add it, or say which it is", 2},
    {"192.0.2.0/24,\n", 1, "no value '': " NO_VALUE, 2},
    {"192.0.2.0/24,a\"b\n", 1, "no value 'a\"b': " NO_VALUE, 2},
    {"192.0.2.0/24,\"\"\n", 1, "no value '': " NO_VALUE, 2},
    {"192.0.2.0/24, \r\n", 1, "no value '': " NO_VALUE, 2},
    {"192.0.2.0/24,\"X\"\"Y\"\n", 1, "no value 'X\"\"Y': " NO_VALUE, 2},
    /* What a terminal would take for more than text: in bytes, in UTF-8, and what is no UTF-8. */
    {"192.0.2.0/24,\x1b[31mXY\n", 1, "no value '\\x1b[31mXY': " NO_VALUE, 2},
    {"192.0.2.0/24,X\rY\n", 1, "no value 'X\\x0dY': " NO_VALUE, 2},
    {"192.0.2.0/24,\x7f\n", 1, "no value '\\x7f': " NO_VALUE, 2},
    {"192.0.2.0/24,\xc2\x9b"
     "1m\n",
     1, "no value '\\xc2\\x9b1m': " NO_VALUE, 2},
    {"192.0.2.0/24,\xe2\x80\xaeYX\n", 1, "no value '\\xe2\\x80\\xaeYX': " NO_VALUE, 2},
    {"192.0.2.0/24,C\xf4te\n", 1, "no value 'C\\xf4te': " NO_VALUE, 2},
    {"192.0.2.0/24," LONG48 "xxxxxxxxxxxxxxxX\n", 1, "no value '" LONG48 "...': " NO_VALUE, 2},
    /* A field goes over no line's end: the second line would be a prefix of its own. */
    {"192.0.2.0/24,XY,\"a\n198.51.100.0/24,ZZ,b\"\n", 1,
     "a quote without its end: '192.0.2.0/24,XY,\"a': " NO_END, 2},
    {"192.0.2.0/24,\"X\nY\"\n", 1, "a quote without its end: '192.0.2.0/24,\"X': " NO_END, 2},
    {"192.0.2.0/24,a\n \"192.0.2.0/24,XY\n", 2,
     "a quote without its end: '\"192.0.2.0/24,XY': " NO_END, 0},
    /* A length in a field of its own, and what is none. */
    {"1.0.0.0\t24\t13335\n1.0.1.1\t24\t13335\n", 2, IS_NO_LENGTH("24", "1.0.1.1", "1"), 3},
    {"# x\n1.0.0.0,24\n1.0.2.0,24\n1.0.1.0,33\n", 4, IS_NO_LENGTH("33", "1.0.1.0", "2"), 0},
    {"1.0.0.0,24\n2001:db8::,129\n", 2, IS_NO_LENGTH("129", "2001:db8::", "1"), 0},
    {"1.0.0.0,24,X\n1.0.1.0,,X\n", 2, IS_NO_LENGTH("", "1.0.1.0", "1"), 3},
    {"1.0.0.0,24\n1.0.1.0,24 x\n", 2, IS_NO_LENGTH("24 x", "1.0.1.0", "1"), 0},
    {"1.0.0.0,24\n1.0.1.0,192.0.2.0/24\n", 2,
     "two prefixes: with '192.0.2.0/24': write one on a line", 0},
    {"1.0.0.0\t24\t1\n1.0.0.0\t24\t2\n", 2, "1.0.0.0/24 is 2 here and 1 in line 1: leave one out",
     3},
    /* A heading is the first line, or none. */
    {"192.0.2.0/24,XY\nnetwork,country\n", 2, "no address, prefix or range 'network': " WRITE, 2},
    {"Not Found\n", 1, "1 field, and value is field 2: add it, or say which it is", 2},
    {",country\n", 1, "no address, prefix or range '': " WRITE, 2},
    {"192.0.2.0/24,a\n192.0.2.0/24,b\n", 2, "192.0.2.0/24 is b here and a in line 1: leave one out",
     2},
};

static void wrong_lines(void **unused)
{
	struct set_text nul;

	(void)unused;
	for (size_t i = 0; i < ARRAY(bad); i++) {
		struct set_text t;

		if (!read_len(bad[i].text, strlen(bad[i].text), bad[i].value_field, &t))
			fail_msg("%zu is read: %s", i, listed(&t));
		assert_string_equal(error.text, bad[i].want);
		assert_int_equal(error.line, bad[i].line);
		assert_string_equal(error.file, "drop.txt");
	}
	assert_int_equal(read_len("192.0.2.1\n\0\n", 12, 0, &nul), -1);
	assert_string_equal(error.text,
			    "a NUL byte: it is no text: unpack it, or name another file");
	assert_int_equal(error.line, 2);
}

/* Lines of 10 MB: of comment and of elements they are read; else the error has their begin. */
static void long_lines(void **unused)
{
	size_t len = 10 << 20, n = 0;
	char *text = malloc(len + 1);
	struct set_text t;

	(void)unused;
	assert_non_null(text);
	memset(text, 'x', len);
	assert_int_equal(read_len(text, len, 0, &t), -1);
	assert_true(strlen(error.text) < 200);
	memset(text, '1', len);
	assert_int_equal(read_len(text, len, 0, &t), -1);
	memcpy(text, "192.0.2.1 #", 11);
	assert_int_equal(read_len(text, len, 0, &t), 0);
	assert_int_equal(t.list.n, 1);
	set_text_free(&t);
	n = (size_t)sprintf(text, "elements = {");
	for (uint32_t i = 0; n + 40 < len; i++)
		n += (size_t)sprintf(text + n, " 10.%u.%u.%u,", i >> 16 & 255, i >> 8 & 255,
				     i & 255);
	n += (size_t)sprintf(text + n, "}\n");
	assert_int_equal(read_len(text, n, 0, &t), 0);
	assert_true(t.list.n > 600000);
	set_text_free(&t);
	free(text);
}

/* No more values than there are numbers for, and no more fields of a line than one has. */
static void many(void **unused)
{
	char *text = malloc(2 << 20);
	struct set_text t;
	size_t n = 0;

	(void)unused;
	assert_non_null(text);
	for (uint32_t i = 0; i < 65536; i++)
		n += (size_t)sprintf(text + n, "10.0.%u.%u,v%u\n", i / 256, i % 256, i);
	assert_int_equal(read_len(text, n, 2, &t), -1);
	assert_string_equal(error.text, "a 65536th value 'v65535': use a field that has fewer");
	assert_int_equal(error.line, 65536);
	n = (size_t)sprintf(text, "192.0.2.1");
	for (int i = 2; i <= 100; i++)
		n += (size_t)sprintf(text + n, ",f%d", i);
	assert_int_equal(read_len(text, n, 64, &t), 0);
	assert_string_equal(listed(&t), "192.0.2.1=f64");
	set_text_free(&t);
	free(text);
}

/* A NUL is part of no name and of no address, whoever asks. */
static void nul(void **unused)
{
	struct set_range range;

	(void)unused;
	assert_false(set_name_fits((struct set_word){"a\0b", 3}));
	assert_int_equal(set_range_read((struct set_word){"::1\0002", 5}, &range), SET_NO_ADDRESS);
}

/* The times of elements are counted, as they are not kept. */
static void timeouts(void **unused)
{
	const char *text =
	    "add x 192.0.2.1 timeout 50\nadd x 192.0.2.2\nadd x 192.0.2.3 timeout 9\n";
	struct set_text t;

	(void)unused;
	assert_int_equal(read_len(text, strlen(text), 0, &t), 0);
	assert_int_equal(t.timeouts, 2);
	set_text_free(&t);
}

/* Every range is cut into prefixes that do not overlap, are adjacent, and are the fewest. */
static void ranges(void **unused)
{
	(void)unused;
	oracle_seed(21);
	for (int i = 0; i < 20000; i++) {
		uint32_t a = draw() >> (draw() & 31) & 0xff, b = draw() & 0xff;
		uint32_t first = a < b ? a : b, last = a < b ? b : a, next = first, fewest = 0;
		struct set_list list = {0};
		char text[80];

		snprintf(text, sizeof(text),
			 i & 1 ? "10.0.0.%u-10.0.0.%u" : "2001:db8::%x-2001:db8::%x", first, last);
		assert_int_equal(set_read_element(text, 1, 1, &list, &error), 0);
		for (size_t k = 0; k < list.n; k++) {
			const struct set_entry *e = &list.entry[k];
			uint32_t at = (e->family == 4 ? e->high >> 32 : e->low) & 0xff;

			assert_int_equal(at, next);
			next += 1u << ((e->family == 4 ? 32 : 128) - e->len);
		}
		assert_int_equal(next, last + 1);
		/* Greedily: the largest that fits is never wrong. */
		for (next = first; next <= last; fewest++) {
			uint32_t size = 1;

			while (!(next & size) && next + 2 * size - 1 <= last && size < 256)
				size *= 2;
			next += size;
		}
		assert_int_equal(list.n, fewest);
		set_list_free(&list);
	}
}

/* Whatever is read, it is read or refused: nothing leaks, and nothing is half done. */
static void noise(void **unused)
{
	(void)unused;
	oracle_seed(22);
	for (int i = 0; i < 40000; i++) {
		const struct text *from = &right[draw() % ARRAY(right)];
		size_t len = strlen(from->text);
		char *text = malloc(len + 1);
		struct set_text t;

		memcpy(text, from->text, len);
		for (uint64_t k = draw() % 6; k && len; k--)
			text[draw() % len] =
			    draw() & 1 ? (char)draw() : " \n,-/{}#\"."[draw() % 10];
		len = draw() & 1 ? len : draw() % (len + 1);
		text = realloc(text, len ? len : 1);
		if (!read_len(text, len, draw() % 4 ? from->value_field : draw() % 5, &t)) {
			assert_true(t.list.n > 0);
			set_text_free(&t);
		} else {
			assert_true(error.text[0] && !strchr(error.text, '\n'));
			assert_null(t.list.entry);
			assert_null(t.names.name);
		}
		free(text);
	}
}

static void names(void **unused)
{
	struct set_names names = {0};

	(void)unused;
	assert_int_equal(set_names_find(&names, "a"), 0);
	for (int i = 0; i < 65535; i++) {
		char name[16];
		struct set_word word = {name, (size_t)snprintf(name, sizeof(name), "n%d", i)};

		assert_int_equal(set_names_add(&names, word), i + 1);
		assert_int_equal(set_names_add(&names, word), i + 1);
	}
	assert_int_equal(set_names_add(&names, (struct set_word){"more", 4}), -1);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(set_names_find(&names, "n0"), 1);
	assert_int_equal(set_names_find(&names, "n65534"), 65535);
	assert_int_equal(set_names_find(&names, "n"), 0);
	set_names_free(&names);
	/* One that another begins with, wherever both are looked for. */
	for (int i = 0; i < 26 * (int)SET_NAME_MAX; i++) {
		char text[SET_NAME_MAX];
		struct set_word word = {text, SET_NAME_MAX - (size_t)i / 26};

		memset(text, 'a' + i % 26, sizeof(text));
		assert_int_equal(set_names_add(&names, word), i + 1);
	}
	set_names_free(&names);
}

/* Pipes that somebody gave the command: as stdin, by its name, and as of a shell's <(...). */
static void given(void **unused)
{
	const char *names[] = {"-", "/dev/stdin", "/dev/fd/0"};
	struct set_source source = {"f", 0, NULL};
	struct set_text t;

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		int end[2];

		assert_int_equal(pipe(end), 0);
		assert_int_equal(write(end[1], "192.0.2.1\n192.0.2.3\n", 20), 20);
		assert_true(dup2(end[0], 0) == 0);
		close(end[0]);
		close(end[1]);
		assert_int_equal(set_read_file(names[i], &source, &t, &error), 0);
		assert_int_equal(t.list.n, 2);
		set_text_free(&t);
	}
}

/* One that is longer than what is read at once; a directory; and nothing at all. */
static void given_more(void **unused)
{
	struct set_source source = {"f", 0, NULL};
	const size_t len = 200000;
	char *text = malloc(len);
	struct set_text t;
	int end[2], fd;

	(void)unused;
	assert_non_null(text);
	for (size_t i = 0; i < len; i += 10)
		memcpy(text + i, "192.0.2.1\n", 10);
	assert_int_equal(pipe(end), 0);
	assert_true(fcntl(end[1], F_SETPIPE_SZ, 1 << 18) > 0);
	assert_int_equal(write(end[1], text, len), len);
	close(end[1]);
	assert_true(dup2(end[0], 0) == 0);
	close(end[0]);
	assert_int_equal(set_read_file("-", &source, &t, &error), 0);
	assert_int_equal(t.list.n + t.list.duplicates, len / 10);
	set_text_free(&t);
	free(text);
	fd = open("/", O_RDONLY | O_DIRECTORY);
	assert_true(dup2(fd, 0) == 0);
	close(fd);
	assert_int_equal(set_read_file("-", &source, &t, &error), -1);
	assert_string_equal(error.text, "it is a directory: name a file of prefixes");
	fd = open("/proc/self/mem", O_RDONLY);
	assert_true(dup2(fd, 0) == 0);
	close(fd);
	assert_int_equal(set_read_file("-", &source, &t, &error), -1);
	assert_string_equal(error.text, "Input/output error: name a file of prefixes");
	close(0);
	assert_int_equal(set_read_file("-", &source, &t, &error), -1);
	assert_string_equal(error.text, "Bad file descriptor: name a file of prefixes");
	assert_int_equal(open("/dev/null", O_RDONLY), 0);
}

/* Files that are none. */
static void files(void **unused)
{
	struct set_source source = {"f", 0, NULL};
	char path[] = "/tmp/test_set_read.XXXXXX";
	int fd = mkstemp(path);
	struct set_text t;

	(void)unused;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "192.0.2.1\n", 10), 10);
	assert_int_equal(set_read_file(path, &source, &t, &error), 0);
	assert_int_equal(t.list.n, 1);
	set_text_free(&t);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(set_read_file(path, &source, &t, &error), -1);
	assert_string_equal(error.text,
			    "it has no prefix: a set that is meant to be empty is written of: []");
	assert_int_equal(set_read_file("/tmp", &source, &t, &error), -1);
	assert_string_equal(error.text, "it is a directory: name a file of prefixes");
	assert_int_equal(set_read_file("/nowhere/x", &source, &t, &error), -1);
	assert_string_equal(error.text, "No such file or directory: name a file of prefixes");
	assert_string_equal(error.file, "/nowhere/x");
	assert_int_equal(chdir("/tmp"), 0); /* a name without its folder is of the present one */
	assert_int_equal(set_read_file("test_set_read.none", &source, &t, &error), -1);
	assert_string_equal(error.file, "/tmp/test_set_read.none");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(set_read_file("nowhere/x", &source, &t, &error), -1);
	assert_string_equal(error.file, "/nowhere/x");
	assert_int_equal(set_read_file("/dev/zero", &source, &t, &error), -1);
	assert_string_equal(error.text, "it is a device: name a file of prefixes");
	close(fd);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it */
	alarm(20);				 /* who waits for that ends */
	assert_int_equal(set_read_file(path, &source, &t, &error), -1);
	alarm(0);
	assert_string_equal(error.text, "it is a pipe: name a file of prefixes");
	unlink(path);
	fd = open("/dev/zero", O_RDONLY); /* what has no end is not read to it */
	assert_true(dup2(fd, 0) == 0);
	assert_int_equal(set_read_file("-", &source, &t, &error), -1);
	assert_string_equal(error.text,
			    "a NUL byte: it is no text: unpack it, or name another file");
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	assert_true(dup2(fd, 0) == 0);
	assert_int_equal(set_read_file("-", &source, &t, &error), -1);
	assert_string_equal(error.text,
			    "it has no prefix: a set that is meant to be empty is written of: []");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(feeds),  cmocka_unit_test(wrong_lines), cmocka_unit_test(long_lines),
	    cmocka_unit_test(ranges), cmocka_unit_test(timeouts),    cmocka_unit_test(noise),
	    cmocka_unit_test(names),  cmocka_unit_test(given),	     cmocka_unit_test(given_more),
	    cmocka_unit_test(many),   cmocka_unit_test(nul),	     cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
