# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's packages of other releases and other machines, while the machine's own lists stay as they are.

# apt_lists DIR ARCHITECTURE SUITE...: from here on apt knows these packages, of which none is installed.
apt_lists()
{
	local dir=$1 arch=$2 mirror=http://deb.debian.org suite area

	shift 2
	mkdir -p "$dir"/{lists/partial,cache/archives/partial,etc/preferences.d}
	: >"$dir/status"
	for suite; do
		area=debian
		[[ $suite != *-security ]] || area=debian-security
		printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s/%s %s main\n' \
			"$mirror" "$area" "$suite"
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
