# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's packages of other releases and other machines, while the machine's own lists stay as they are.

# mirror_of LABEL: where the machine has Debian's packages from, or those of Debian-Security.
mirror_of()
{
	# shellcheck disable=SC2016 # apt's own names
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		awk -v label="$1" '$1 == label { print $2; exit }'
}

# apt_lists DIR ARCHITECTURE SUITE...: from here on apt knows these packages, of which none is installed.
apt_lists()
{
	local dir=$1 arch=$2 mirror security suite from

	shift 2
	mirror=$(mirror_of Debian)
	[[ -n $mirror ]] || { echo "apt knows no mirror of Debian: apt-get update first" >&2 && return 1; }
	security=$(mirror_of Debian-Security)
	mkdir -p "$dir"/{lists/partial,cache/archives/partial,etc/preferences.d}
	: >"$dir/status"
	for suite; do
		from=$mirror
		[[ $suite != *-security ]] || from=$security
		[[ -n $from ]] || { echo "$suite: left out: apt knows no mirror of it" >&2 && continue; }
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "$from" "$suite"
	done >"$dir/etc/sources.list"
	cat >"$dir/apt.conf" <<-CONF
	Dir::State "$dir";
	Dir::State::lists "$dir/lists";
	Dir::State::status "$dir/status";
	Dir::Cache "$dir/cache";
	Dir::Etc::sourcelist "$dir/etc/sources.list";
	Dir::Etc::sourceparts "-";
	Dir::Etc::preferencesparts "$dir/etc/preferences.d";
	APT::Architecture "$arch";
	APT::Architectures { "$arch"; };
	APT::Install-Recommends "false";
	Acquire::Languages "none";
	APT::Sandbox::User "$(id -un)";
	CONF
	export APT_CONFIG=$dir/apt.conf
	[[ -n $(find "$dir/lists" -name '*Packages*' -mmin -600 -print -quit) ]] || apt-get -qq update
}
