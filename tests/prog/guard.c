/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load objects, given as COMPILER=FILE, and print for each of their programs what the verifier saw
 * and what was made of it: program, compiler, instructions verified, bytes of BPF, bytes of machine
 * code, bytes of all maps. Exit 1 where one does not load.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>

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

static int measure(const char *compiler, const char *path)
{
	struct bpf_object *obj = bpf_object__open_file(path, NULL);
	unsigned long long bytes = 0;
	struct bpf_program *program;
	struct bpf_map *map;

	if (!obj || bpf_object__load(obj)) {
		fprintf(stderr, "%s: %s does not load\n", compiler, path);
		bpf_object__close(obj);
		return 1;
	}
	bpf_object__for_each_map(map, obj) bytes += map_bytes(map);
	bpf_object__for_each_program(program, obj)
	{
		struct bpf_prog_info info = {0};
		__u32 len = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &len)) {
			fprintf(stderr, "%s: %s\n", path, strerror(errno));
			return 1;
		}
		printf("%s\t%s\t%u\t%u\t%u\t%llu\n", bpf_program__name(program), compiler,
		       info.verified_insns, info.xlated_prog_len, info.jited_prog_len, bytes);
	}
	bpf_object__close(obj);
	return 0;
}

int main(int argc, char **argv)
{
	int i, failed = 0;

	libbpf_set_print(print_warnings);
	for (i = 1; i < argc; i++) {
		char *path = strchr(argv[i], '=');

		if (!path) {
			fprintf(stderr, "usage: guard COMPILER=FILE...\n");
			return 2;
		}
		*path++ = 0;
		failed |= measure(argv[i], path);
	}
	return failed;
}
