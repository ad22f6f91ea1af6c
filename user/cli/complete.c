/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completion for shells, written from the verbs' tables. The name of an argument in the tables says
 * what it may be: FILE and POLICY are files, FOLDER is one, IFACE is an interface, and
 * "native|skb|hw" lists the words. The scripts never evaluate names of interfaces, which may hold
 * what a shell would run.
 */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"

/* --- what a word may be --------------------------------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool is_file(const char *argument)
{
	return begins(argument, "FILE") || begins(argument, "POLICY");
}

static bool is_folder(const char *argument)
{
	return begins(argument, "FOLDER");
}

static bool is_words(const char *argument)
{
	return strchr(argument, '|');
}

static void print_spaced(const char *words)
{
	for (; *words; words++)
		putchar(*words == '|' ? ' ' : *words);
}

/* The next row of the options, or NULL. */
struct rows {
	const struct option_row *const *table;
	const struct option_row *at;
};

static struct rows rows_of(const struct verb *verb)
{
	const struct option_row *const *table = option_tables(verb);

	return (struct rows){table, *table};
}

static const struct option_row *next_row(struct rows *rows)
{
	while (rows->at && !rows->at->name) {
		rows->table++;
		rows->at = *rows->table;
	}
	return rows->at ? rows->at++ : NULL;
}

/* `more`: what is no verb of the tables. */
static void print_verbs(const char *more)
{
	for (const struct verb *const *v = verbs; *v; v++)
		printf("%s ", (*v)->name);
	printf("%s", more);
}

/* --- bash ----------------------------------------------------------------------------------- */

/* "-c|--policy" */
static void print_names(const struct option_row *row, const char *between)
{
	if (row->letter)
		printf("-%c%s", row->letter, between);
	printf("--%s", row->name);
}

/* The argument of an option. Nothing is offered for other names in the table. */
static void bash_argument(const struct option_row *row)
{
	printf("\t\t");
	print_names(row, " | ");
	printf(") what='");
	if (is_file(row->argument))
		printf("@files");
	else if (is_folder(row->argument))
		printf("@folders");
	else if (is_words(row->argument))
		print_spaced(row->argument);
	else
		printf("@none");
	printf("' ;;\n");
}

/*
 * What the verb's first argument may be, and whether its second one is a file behind an interface.
 * "FILE|IFACE" is either at the first place, "IFACE FILE" one behind the other. What is in brackets
 * behind words (sets) depends on the word.
 */
struct leading {
	bool interface, file, then_file;
	bool more; /* interfaces, at every place */
};

static struct leading leading_of(const struct verb *verb)
{
	const char *end = strpbrk(verb->arguments, " ");
	const char *interface = strstr(verb->arguments, "IFACE");
	const char *file = strstr(verb->arguments, "FILE");

	return (struct leading){
	    .interface = interface && (!end || interface < end),
	    .file = file && (!end || file < end),
	    .then_file = file && end && file == end + 1,
	    .more = interface && !end && !strncmp(interface, "IFACE...", 8),
	};
}

static bool word_takes_file(const struct word_row *word)
{
	return strstr(word->arguments, " FILE");
}

/* Words whose second argument is a file. */
static void print_words_of_files(const struct verb *verb)
{
	for (const struct word_row *word = verb->words; word && word->name; word++)
		if (word_takes_file(word))
			printf("%s ", word->name);
}

/* Words are offered by how many non-option words come before. */
static void bash_args(const struct verb *verb)
{
	struct leading first = leading_of(verb);

	printf("\t\tplaces=('%s%s%s'", first.interface ? "@interfaces" : "",
	       first.interface && first.file ? " " : "", first.file ? "@files" : "");
	if (first.then_file)
		printf(" '@files'");
	if (verb->words) {
		printf(" '");
		for (const struct word_row *word = verb->words; word->name; word++)
			printf("%s ", word->name);
		putchar('\'');
	}
	printf(")\n\t\tof_files=' ");
	print_words_of_files(verb);
	printf("'\n\t\tmore=%s\n", first.more ? "@interfaces" : "");
}

static void bash_verb(const struct verb *verb)
{
	const struct option_row *row;
	struct rows rows = rows_of(verb);

	printf("\t%s)\n\t\toptions='", verb->name);
	while ((row = next_row(&rows))) {
		print_names(row, " ");
		putchar(' ');
	}
	printf("'\n\t\tvalued='");
	for (rows = rows_of(verb); (row = next_row(&rows));)
		if (row->argument) {
			putchar(' ');
			print_names(row, " ");
		}
	printf(" '\n");
	bash_args(verb);
	printf("\t\tcase $prev in\n");
	for (rows = rows_of(verb); (row = next_row(&rows));)
		if (row->argument)
			bash_argument(row);
	printf("\t\tesac\n\t\t;;\n");
}

static const char bash_begin[] =
    "# bash completion for xdp-pacer, written by `xdp-pacer help --completion bash`\n"
    "_xdp_pacer_interfaces()\n"
    "{\n"
    "\tlocal path name\n"
    "\n"
    "\tfor path in /sys/class/net/*; do\n"
    "\t\tname=${path##*/}\n"
    "\t\t[[ -e $path && $name == \"$1\"* ]] || continue\n"
    "\t\t[[ $what == *@files* ]] || name=$(printf %q \"$name\") # which bash does for files\n"
    "\t\tCOMPREPLY+=(\"$name\")\n"
    "\tdone\n"
    "}\n"
    "\n"
    "_xdp_pacer()\n"
    "{\n"
    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "\tlocal options='' valued='' what='' of_files='' word='' more='' kind place=0 i\n"
    "\tlocal -a places=()\n"
    "\n"
    "\tCOMPREPLY=()\n"
    "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n";

static const char bash_middle[] = "\t\treturn\n"
				  "\tfi\n"
				  "\t[ \"$cur\" = = ] && cur=\n"
				  "\t[ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
				  "\tcase ${COMP_WORDS[1]} in\n";

static const char bash_end[] =
    "\tesac\n"
    "\tif [ -z \"$what\" ] && [[ $cur == -* ]]; then\n"
    "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tif [ -z \"$what\" ]; then\n"
    "\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
    "\t\t\tif [[ $valued == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
    "\t\t\t\t[ \"${COMP_WORDS[i + 1]}\" = = ] && ((i++))\n"
    "\t\t\t\t((i++))\n"
    "\t\t\telif [[ ${COMP_WORDS[i]} != -* ]]; then\n"
    "\t\t\t\t((place++))\n"
    "\t\t\t\t[ \"$place\" = 2 ] && word=${COMP_WORDS[i]}\n"
    "\t\t\tfi\n"
    "\t\tdone\n"
    "\t\twhat=${places[place]-$more}\n"
    "\t\t[[ $place == 3 && $of_files == *\" $word \"* ]] && what=@files\n"
    "\tfi\n"
    "\tfor kind in $what; do\n"
    "\t\tcase $kind in\n"
    "\t\t@none) ;;\n"
    "\t\t@interfaces) _xdp_pacer_interfaces \"$cur\" ;;\n"
    "\t\t@files)\n"
    "\t\t\tcompopt -o filenames 2>/dev/null\n"
    "\t\t\twhile IFS= read -r i; do\n"
    "\t\t\t\tCOMPREPLY+=(\"$i\")\n"
    "\t\t\tdone < <(compgen -f -- \"$cur\")\n"
    "\t\t\t;;\n"
    "\t\t@folders)\n"
    "\t\t\tcompopt -o filenames 2>/dev/null\n"
    "\t\t\twhile IFS= read -r i; do\n"
    "\t\t\t\tCOMPREPLY+=(\"$i\")\n"
    "\t\t\tdone < <(compgen -d -- \"$cur\")\n"
    "\t\t\t;;\n"
    "\t\t\"$cur\"*) COMPREPLY+=(\"$kind\") ;;\n"
    "\t\tesac\n"
    "\tdone\n"
    "}\n"
    "complete -F _xdp_pacer xdp-pacer\n";

static void complete_bash(void)
{
	fputs(bash_begin, stdout);
	printf("\t\tmapfile -t COMPREPLY < <(compgen -W '");
	print_verbs("help version");
	printf("' -- \"$cur\")\n");
	fputs(bash_middle, stdout);
	for (const struct verb *const *v = verbs; *v; v++)
		bash_verb(*v);
	printf("\thelp)\n\t\toptions=--completion\n\t\tplaces=('");
	print_verbs("policy limits");
	printf("')\n\t\t[ \"$prev\" = --completion ] && what='bash zsh'\n\t\t;;\n");
	fputs(bash_end, stdout);
}

/* --- zsh ------------------------------------------------------------------------------------ */

/* Prints text for a specification of _arguments, within single quotes. */
static void print_zsh(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'') {
			printf("'\\''");
			continue;
		}
		if (strchr("[]:\\", *text))
			putchar('\\');
		putchar(*text);
	}
}

static void zsh_action(const char *argument)
{
	if (is_file(argument)) {
		printf("_files");
	} else if (is_folder(argument)) {
		printf("_files -/");
	} else if (is_words(argument)) {
		putchar('(');
		print_spaced(argument);
		putchar(')');
	} else {
		putchar(' ');
	}
}

static void zsh_option(const struct option_row *row)
{
	printf("\t\t\t");
	if (row->letter)
		printf("'(-%c --%s)'{-%c%s,--%s%s}", row->letter, row->name, row->letter,
		       row->argument ? "+" : "", row->name, row->argument ? "=" : "");
	else
		printf("--%s%s", row->name, row->argument ? "=" : "");
	printf("'[");
	print_zsh(row->help);
	putchar(']');
	if (row->argument) {
		putchar(':');
		print_zsh(row->argument);
		putchar(':');
		zsh_action(row->argument);
	}
	printf("' \\\n");
}

static void zsh_words(const struct verb *verb)
{
	if (!verb->words)
		return;
	printf("\t\t\t'2:word:((");
	for (const struct word_row *word = verb->words; word->name; word++) {
		printf("%s\\:\"", word->name);
		print_zsh(word->help);
		printf("\" ");
	}
	printf("))' \\\n");
	for (const struct word_row *word = verb->words; word->name; word++)
		if (word_takes_file(word))
			printf("\t\t\t'4:file:{((words[(I)%s])) && _files}' \\\n", word->name);
}

static void zsh_verb(const struct verb *verb)
{
	struct leading first = leading_of(verb);
	const struct option_row *row;
	struct rows rows = rows_of(verb);

	printf("\t%s)\n\t\t_arguments -s -S \\\n", verb->name);
	while ((row = next_row(&rows)))
		zsh_option(row);
	zsh_words(verb);
	if (first.then_file)
		printf("\t\t\t'2:file:_files' \\\n");
	if (first.more)
		printf("\t\t\t'*:interface:_xdp_pacer_interfaces'%s\n", first.file ? " \\" : "");
	if (first.interface && first.file)
		printf("\t\t\t'1:capture or interface:_xdp_pacer_either'\n");
	else if (first.interface && !first.more)
		printf("\t\t\t'1:interface:_xdp_pacer_interfaces'\n");
	else if (first.file)
		printf("\t\t\t'1:capture:_files'\n");
	else if (!first.more)
		printf("\t\t\t'*: :'\n");
	printf("\t\t;;\n");
}

static const char zsh_begin[] =
    "#compdef xdp-pacer\n"
    "# zsh completion for xdp-pacer, written by `xdp-pacer help --completion zsh`\n"
    "_xdp_pacer_interfaces()\n"
    "{\n"
    "\tlocal -a names\n"
    "\n"
    "\tnames=(/sys/class/net/*(N:t))\n"
    "\tcompadd -a names\n"
    "}\n"
    "\n"
    "_xdp_pacer_either()\n"
    "{\n"
    "\t_alternative 'interfaces:interface:_xdp_pacer_interfaces' 'files:capture:_files'\n"
    "}\n"
    "\n"
    "_xdp_pacer()\n"
    "{\n"
    "\tlocal -a verbs\n"
    "\n"
    "\tverbs=(\n";

static const char zsh_middle[] =
    "\t)\n"
    "\tif ((CURRENT == 2)); then\n"
    "\t\t_describe verb verbs\n"
    "\t\treturn\n"
    "\tfi\n"
    "\tshift words\n"
    "\t((CURRENT--))\n"
    "\tcase $words[1] in\n"
    "\thelp)\n"
    "\t\tverbs=(\"${(@)verbs:#version:*}\" 'policy:the fields of a policy' "
    "'limits:the kinds of limits')\n"
    "\t\t_arguments '--completion[print what completes these words]:shell:(bash zsh)' \\\n"
    "\t\t\t'1:verb:{_describe verb verbs}'\n"
    "\t\t;;\n";

static const char zsh_end[] = "\tesac\n"
			      "}\n"
			      "\n"
			      "if [ \"$funcstack[1]\" = _xdp_pacer ]; then\n"
			      "\t_xdp_pacer \"$@\"\n"
			      "else\n"
			      "\tcompdef _xdp_pacer xdp-pacer\n"
			      "fi\n";

static void complete_zsh(void)
{
	fputs(zsh_begin, stdout);
	for (const struct verb *const *v = verbs; *v; v++) {
		printf("\t\t'%s:", (*v)->name);
		print_zsh((*v)->summary);
		printf("'\n");
	}
	printf("\t\t'help:what a verb takes'\n\t\t'version:the version and that of the ABI'\n");
	fputs(zsh_middle, stdout);
	for (const struct verb *const *v = verbs; *v; v++)
		zsh_verb(*v);
	fputs(zsh_end, stdout);
}

int complete(const char *shell)
{
	if (shell && !strcmp(shell, "bash"))
		complete_bash();
	else if (shell && !strcmp(shell, "zsh"))
		complete_zsh();
	else
		return misused("help", "--completion wants bash or zsh");
	(void)stdout_failed(); /* which keeps the cause; it is said at the end */
	return EXIT_DONE;
}
