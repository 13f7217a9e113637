#!/usr/bin/env bash
# Puts the files that dist.sum names into dist/, out of their npm packages,
# checked and compressed. Does nothing if they are there.
set -euo pipefail
cd "$(dirname "$0")"

whole() {
  cmp -s dist.sum dist/dist.sum || return 1
  while read -r _ file; do [ -s "dist/${file##*/}.gz" ] || return 1; done <dist.sum
}
if whole; then exit 0; fi

command -v npm >/dev/null 2>&1 || { echo 'npm is needed to fetch GraphiQL (Debian: apt-get install npm)' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sums=$PWD/dist.sum out=$PWD/dist
cd "$work"
for package in $(sed 's/^[0-9a-f]*  //; s|/.*||' "$sums" | sort -u); do
  archive=$(npm pack --silent --ignore-scripts "$package")
  mkdir "$package"
  tar -xzf "$archive" -C "$package" --strip-components=1
done
check='sha256sum'
command -v sha256sum >/dev/null 2>&1 || check='shasum -a 256'
$check -c "$sums" >/dev/null
rm -f "$out"/*.gz "$out"/dist.sum
while read -r _ file; do gzip -9 -n -c "$file" >"$out/${file##*/}.gz"; done <"$sums"
cp "$sums" "$out/dist.sum"
