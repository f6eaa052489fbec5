#!/bin/sh
# Packs a program that was built into a package for Debian, in target/deb: PROGRAM, by default that of `make release`.
# It has the program, its manual pages, completions, the licences and the units for systemd, which stay disabled.
set -eu

cd "$(dirname "$0")/.."
program=${PROGRAM:-target/release/fairpath}
if [ ! -x "$program" ]; then
	echo "deb: there is no program at $program: run \`make release\` first, or name another with PROGRAM" >&2
	exit 1
fi
if ! command -v dpkg-deb >/dev/null; then
	echo "deb: dpkg-deb is missing (Debian: apt-get install dpkg)" >&2
	exit 1
fi

version=$("$program" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
# The C library that the program was linked with is the oldest that does.
libc=$(dpkg-query -W -f '${Version}' libc6 | cut -d - -f 1)
root=target/deb/fairpath_${version}_${architecture}
rm -rf "$root"
share=$root/usr/share

install -Dm755 "$program" "$root/usr/bin/fairpath"
"$program" man "$share/man/man1"
gzip -9n "$share"/man/man1/*
for shell in bash zsh fish; do
	case $shell in
	bash) place=$share/bash-completion/completions/fairpath ;;
	zsh) place=$share/zsh/vendor-completions/_fairpath ;;
	fish) place=$share/fish/vendor_completions.d/fairpath.fish ;;
	esac
	mkdir -p "$(dirname "$place")"
	"$program" completions "$shell" >"$place"
done
for unit in serve:lib/systemd/system proxy:usr/lib/systemd/user recv:usr/lib/systemd/user; do
	place=$root/${unit#*:}/fairpath-${unit%%:*}.service
	mkdir -p "$(dirname "$place")"
	sed 's,/usr/local/bin/,/usr/bin/,' "dist/fairpath-${unit%%:*}.service" >"$place"
done
mkdir -p "$share/doc/fairpath"
cp LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$share/doc/fairpath/"

mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: fairpath
Version: $version
Architecture: $architecture
Maintainer: Fairpath
Depends: libc6 (>= $libc), libgcc-s1
Suggests: nftables
Section: net
Priority: optional
Installed-Size: $(du -ks "$root" | cut -f 1)
Description: one connection over several network paths
 Files, live streams and any program's connections over all links of a machine,
 fast where they are separate and fair where they share a bottleneck.
END
dpkg-deb --root-owner-group --build "$root" target/deb >/dev/null
echo "target/deb/fairpath_${version}_${architecture}.deb"
