/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load objects, given as COMPILER=FILE, as they are and for raw IP, and
 * print for each of their programs what the verifier saw and what was made of it: program,
 * compiler, instructions verified, bytes of BPF, bytes of machine code, bytes of all maps, and of
 * the stack as Linux 6.1 counts it. Exit 1 where one does not load, or takes more stack than
 * that has; with -v, where that goes.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "built.h"
#include "depths.h"

#define SUBPROGS       256
#define DEPTH	       8   /* functions on the stack at once */
#define STACK_BYTES    512 /* of them all */
#define STACK_MULTIPLE 32  /* of each: newer kernels round to 16 where they make machine code */

#define LOG_BYTES (1 << 16)
#define PROGRAMS  2 /* of an object */
#define LOG_STATS 4 /* the kernel's BPF_LOG_STATS: of the verifier's log, its last lines only */

static bool verbose;

/* Functions of a program, in the order of their code, and what each takes of the stack. */
struct stack {
	const struct bpf_insn *insn;
	size_t n_insns, n;
	size_t start[SUBPROGS + 1];
	unsigned int bytes[SUBPROGS];
	size_t way[DEPTH], worst[DEPTH]; /* functions that are on the stack at once */
	unsigned int worst_bytes;
	size_t worst_n;
};

/* Or where a function is named that a helper calls: its frame lies on the caller's, too. */
static bool is_call(const struct bpf_insn *insn)
{
	if (insn->code == (BPF_LD | BPF_IMM | BPF_DW))
		return insn->src_reg == BPF_PSEUDO_FUNC;
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;
}

static size_t subprog_at(const struct stack *s, size_t at)
{
	size_t i = 0;

	while (i < s->n && s->start[i] != at)
		i++;
	return i;
}

static int by_start(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* A function is what is called. 0, or -1. */
static int find_subprogs(struct stack *s)
{
	size_t i;

	s->start[s->n++] = 0;
	for (i = 0; i < s->n_insns; i++) {
		size_t to = i + 1 + s->insn[i].imm;

		if (!is_call(&s->insn[i]) || subprog_at(s, to) < s->n)
			continue;
		if (s->n == SUBPROGS)
			return -1;
		s->start[s->n++] = to;
	}
	qsort(s->start, s->n, sizeof(s->start[0]), by_start);
	s->start[s->n] = s->n_insns;
	return 0;
}

static unsigned int rounded(unsigned int bytes)
{
	if (!bytes)
		bytes = 1;
	return (bytes + STACK_MULTIPLE - 1) / STACK_MULTIPLE * STACK_MULTIPLE;
}

/* Down from a function of the way, on which are so many bytes: the deepest is kept. */
static void descend(struct stack *s, size_t n, size_t subprog, unsigned int bytes)
{
	size_t i;

	bytes += rounded(s->bytes[subprog]);
	s->way[n++] = subprog;
	if (bytes > s->worst_bytes) {
		s->worst_bytes = bytes;
		s->worst_n = n;
		memcpy(s->worst, s->way, n * sizeof(s->way[0]));
	}
	for (i = s->start[subprog]; i < s->start[subprog + 1] && n < DEPTH; i++)
		if (is_call(&s->insn[i]))
			descend(s, n, subprog_at(s, i + 1 + s->insn[i].imm), bytes);
}

/* For people: where the deepest way leads. */
static void tell(const struct stack *s, const struct bpf_program *program)
{
	struct bpf_func_info func[SUBPROGS] = {0};
	struct bpf_prog_info info = {.func_info_rec_size = sizeof(func[0]),
				     .nr_func_info = SUBPROGS,
				     .func_info = (unsigned long)func};
	__u32 len = sizeof(info);
	struct btf *btf = NULL;
	size_t i;

	if (!bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len) &&
	    info.nr_func_info == s->n)
		btf = btf__load_from_kernel_by_id(info.btf_id);
	for (i = 0; i < s->worst_n; i++) {
		const struct btf_type *type =
		    btf ? btf__type_by_id(btf, func[s->worst[i]].type_id) : NULL;

		fprintf(stderr, "%5u (%u) %s, function %zu\n", rounded(s->bytes[s->worst[i]]),
			s->bytes[s->worst[i]], type ? btf__name_by_offset(btf, type->name_off) : "",
			s->worst[i]);
	}
	btf__free(btf);
}

/* The bytes of stack of all calls at once, at worst. 0: it could not be told. */
static unsigned int stack_of(const struct bpf_program *program, const char *log)
{
	struct stack s = {.insn = bpf_program__insns(program),
			  .n_insns = bpf_program__insn_cnt(program)};

	if (find_subprogs(&s) || depths_read(log, s.bytes, s.n))
		return 0;
	descend(&s, 0, 0, 0);
	if (verbose || s.worst_bytes > STACK_BYTES)
		tell(&s, program);
	return s.worst_bytes;
}

static int print_warnings(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* As the kernel counts it. */
static unsigned long long map_bytes(const struct bpf_map *map)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	if (f)
		fclose(f);
	return bytes;
}

enum kind { AS_IT_IS, RAW_IP };

static const char *const kind_names[] = {"", "+raw"};

/* logs: NULL, or one for each program, in their order. */
static struct bpf_object *load(const char *path, enum kind kind, char (*logs)[LOG_BYTES])
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	struct bpf_program *program;
	size_t n = 0;

	if (!obj)
		return NULL;
	bpf_object__for_each_program(program, obj)
	{
		/* As the tool loads a shadow: for the frames that the pacer is for. Without, none
		 * loads. */
		if (!strcmp(bpf_program__name(program), "pacer_shadow"))
			(void)bpf_program__set_flags(program, BPF_F_XDP_HAS_FRAGS);
	}
	bpf_object__for_each_program(program, obj)
	{
		if (!logs || n == PROGRAMS)
			break;
		bpf_program__set_log_buf(program, logs[n++], LOG_BYTES);
		bpf_program__set_log_level(program, LOG_STATS);
	}
	if (kind == RAW_IP)
		built_of(obj)->raw_ip = 1;
	if (!bpf_object__load(obj))
		return obj;
	bpf_object__close(obj);
	return NULL;
}

/* The object that a program is of, where that is not the pacer's own: "shadow:". */
static const char *of_object(const char *path)
{
	return strstr(path, "/shadow.") ? "shadow:" : "";
}

/* One row. 0, or 1 where there is something wrong with the program. */
static int measure_program(const char *compiler, const char *path,
			   const struct bpf_program *program, enum kind kind,
			   unsigned long long bytes, const char *log)
{
	const char *name = bpf_program__name(program);
	unsigned int stack = stack_of(program, log);
	struct bpf_prog_info info = {0};
	__u32 len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len)) {
		fprintf(stderr, "%s: %s: %s\n", compiler, name, strerror(errno));
		return 1;
	}
	printf("%s%s%s\t%s\t%u\t%u\t%u\t%llu\t%u\n", of_object(path), name, kind_names[kind],
	       compiler, info.verified_insns, info.xlated_prog_len, info.jited_prog_len, bytes,
	       stack);
	if (stack && stack <= STACK_BYTES)
		return 0;
	if (stack)
		fprintf(stderr, "%s: %s: %u bytes of stack, of %u\n", compiler, name, stack,
			STACK_BYTES);
	else
		fprintf(stderr, "%s: %s: the kernel's log does not tell the stack: %s\n", compiler,
			name, log);
	return 1;
}

static int measure(const char *compiler, const char *path, enum kind kind)
{
	static char logs[PROGRAMS][LOG_BYTES];
	struct bpf_object *obj = load(path, kind, logs);
	unsigned long long bytes = 0;
	struct bpf_program *program;
	struct bpf_map *map;
	int failed = 0;
	size_t n = 0;

	if (!obj) {
		/* Again, for libbpf to say where. */
		bpf_object__close(load(path, kind, NULL));
		fprintf(stderr, "%s: %s%s does not load\n", compiler, path, kind_names[kind]);
		return 1;
	}
	bpf_object__for_each_map(map, obj) bytes += map_bytes(map);
	bpf_object__for_each_program(program, obj)
	{
		if (n == PROGRAMS)
			break;
		failed |= measure_program(compiler, path, program, kind, bytes, logs[n++]);
	}
	bpf_object__close(obj);
	return failed;
}

int main(int argc, char **argv)
{
	int i, failed = 0;

	libbpf_set_print(print_warnings);
	verbose = argc > 1 && !strcmp(argv[1], "-v");
	for (i = 1 + verbose; i < argc; i++) {
		char *path = strchr(argv[i], '=');

		if (!path) {
			fprintf(stderr, "usage: guard [-v] COMPILER=FILE...\n");
			return 2;
		}
		*path++ = 0;
		failed |= measure(argv[i], path, AS_IT_IS);
		failed |= measure(argv[i], path, RAW_IP);
	}
	return failed;
}
