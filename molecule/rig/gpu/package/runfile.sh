#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Simulated NVIDIA driver package: this script, then a compressed archive. Unpacks itself and runs nvidia-installer.
version=@VERSION@
checksum='@CHECKSUM@'
label="NVIDIA Accelerated Graphics Driver for Linux-x86_64 $version"
folder=NVIDIA-Linux-x86_64-$version
lines=@LINES@

payload() { tail -n +$((lines + 1)) "$0"; }
verify() {
	printf 'Verifying archive integrity... '
	if [ "$(payload | cksum)" != "$checksum" ]; then
		printf 'Error in checksums: %s is different from %s\n' "$(payload | cksum | cut -d' ' -f1)" "${checksum%% *}" >&2
		exit 1
	fi
	echo OK
}
usage() {
	printf '\n%s [options]\n\nThis program will install the %s\nby unpacking the embedded tarball and executing the ./nvidia-installer  installation utility.\n\n' "$0" "$label"
	printf -- '--info\n  Print embedded info (title, default target directory) and exit.\n\n--check\n  Check integrity of the archive and exit.\n\n'
	printf -- '--list\n  Print the list of files in the archive and exit.\n\n-x, --extract-only\n  Extract the contents of %s, but do not\n  run '\''nvidia-installer'\''.\n\n' "$0"
	printf 'The following arguments will be passed on to the ./nvidia-installer\nutility:\n\n'
	printf '  -v, --version\n      Print the nvidia-installer version and exit.\n\n  -h, --help\n      Print usage information for the common commandline options and exit.\n\n'
	printf '  -A, --advanced-options\n      Print usage information for the common commandline options as well as the advanced options, and then exit.\n\n'
}

temporary=${TMPDIR:-/tmp} target='' extract=0 keep=0
count=$#
while [ "$count" -gt 0 ]; do
	argument=$1
	shift
	count=$((count - 1))
	case $argument in
	-h | --help | -A | --advanced-options) usage; exit 0 ;;
	-v | --version) printf '\nnvidia-installer:  version %s\n\n' $version; exit 0 ;;
	--info)
		printf '\n  Identification    : %s\n  Target directory  : %s\n  Compression       : gzip\n' "$label" $folder
		printf '  Application run after extraction : ./nvidia-installer\n\n  The directory %s will be removed after extraction.\n\n' $folder
		exit 0
		;;
	--check) verify; exit 0 ;;
	--list) payload | tar -tzf -; exit ;;
	-x | --extract-only) extract=1 keep=1 ;;
	--keep) keep=1 ;;
	--target) target=$1 keep=1; shift; count=$((count - 1)) ;;
	--target=*) target=${argument#*=} keep=1 ;;
	*)
		case $argument in --tmpdir=*) temporary=${argument#*=} ;; --tmpdir) temporary=$1 ;; esac
		set -- "$@" "$argument"
		;;
	esac
done

[ ! -e "$PWD/$folder" ] || [ $extract = 0 ] || [ -n "$target" ] || { printf "The directory '%s' already exists.\n" $folder >&2; exit 1; }
verify
if [ $keep = 1 ]; then
	target=${target:-$PWD/$folder}
	mkdir -p "$target" || exit 1
else
	target=$(mktemp -d "$temporary/makeself.XXXXXXXX") || exit 1
	trap 'rm -rf "$target"' EXIT
	trap 'exit 1' HUP INT TERM
fi
printf 'Uncompressing %s' "$label"
payload | tar -xzf - -C "$target" --no-same-owner || { echo ' failed.' >&2; exit 1; }
echo '.....'
[ $extract = 0 ] || exit 0
"$target/nvidia-installer" "$@"
exit
